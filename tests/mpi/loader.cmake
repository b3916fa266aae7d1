# The loader over MPI: batches, the cache shared by a node, staging.
lockstep_add_test_program(mpi_loader_test SOURCES loader_test.cpp made_samples_test.cpp stage_test.cpp LIBRARIES lockstep_mpi_main lockstep::data)
lockstep_add_mpi_test(loader PROGRAM mpi_loader_test RANKS 1 2 3 4 LABELS data)
