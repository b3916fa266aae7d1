# Tests of `lockstep`; included where the program is built. The helpers of lib.bash start $REDUCE_ALL: here, lockstep.
foreach(name IN ITEMS shard_bad_input shard_bench shard_change shard_disk_full shard_import shard_interrupt shard_ranks
                      shard_synth train train_bad_input)
  add_test(NAME cli.${name} COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/${name}.bash)
  set_tests_properties(cli.${name} PROPERTIES LABELS cli PROCESSORS 2 TIMEOUT 300 SKIP_RETURN_CODE 77 ENVIRONMENT
    "${LOCKSTEP_MPI_TEST_ENVIRONMENT};REDUCE_ALL=$<TARGET_FILE:lockstep_program>;MPIEXEC=${MPIEXEC_EXECUTABLE};MPIEXEC_NUMPROC_FLAG=${MPIEXEC_NUMPROC_FLAG};MPIEXEC_PREFLAGS=${MPIEXEC_PREFLAGS}")
endforeach()
