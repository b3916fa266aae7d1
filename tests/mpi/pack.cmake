add_executable(mpi_pack_test pack_test.cpp verify_test.cpp)
target_link_libraries(mpi_pack_test PRIVATE lockstep_mpi_main lockstep::data lockstep_options)
lockstep_add_mpi_test(pack COMMAND $<TARGET_FILE:mpi_pack_test> RANKS 1 2 3 4 LABELS data)
