# Tests of `lockstep shard`; included where the program is built. The helpers of lib.bash start $REDUCE_ALL: here, lockstep.
foreach(name IN ITEMS bad_input bench change disk_full import interrupt ranks synth)
  add_test(NAME cli.shard_${name} COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/shard_${name}.bash)
  set_tests_properties(cli.shard_${name} PROPERTIES LABELS cli PROCESSORS 2 TIMEOUT 300 SKIP_RETURN_CODE 77 ENVIRONMENT
    "${LOCKSTEP_MPI_TEST_ENVIRONMENT};REDUCE_ALL=$<TARGET_FILE:lockstep_program>;MPIEXEC=${MPIEXEC_EXECUTABLE};MPIEXEC_NUMPROC_FLAG=${MPIEXEC_NUMPROC_FLAG};MPIEXEC_PREFLAGS=${MPIEXEC_PREFLAGS}")
endforeach()
