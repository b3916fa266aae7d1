lockstep_add_test_program(mpi_pack_test SOURCES pack_test.cpp verify_test.cpp LIBRARIES lockstep_mpi_main lockstep::data)
lockstep_add_mpi_test(pack PROGRAM mpi_pack_test RANKS 1 2 3 4 LABELS data)
