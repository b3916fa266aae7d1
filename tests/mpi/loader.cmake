# The loader over MPI: batches, the cache shared by a node, staging.
add_executable(mpi_loader_test loader_test.cpp)
target_link_libraries(mpi_loader_test PRIVATE lockstep_mpi_main lockstep::data lockstep_options)
lockstep_add_mpi_test(loader COMMAND $<TARGET_FILE:mpi_loader_test> RANKS 1 2 3 4 LABELS data)
