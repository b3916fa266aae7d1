# How tests are registered. Names: <kind>.<what>[.np<n>]; labels: the kind, np<n> and whatever is given.

# What every MPI test needs from its launcher, as environment: harmless to an MPI that does not know it.
set(LOCKSTEP_MPI_TEST_ENVIRONMENT "OMP_NUM_THREADS=1;OMPI_MCA_rmaps_base_oversubscribe=1;OMPI_ALLOW_RUN_AS_ROOT=1"
                                  "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMPI_MCA_hwloc_base_binding_policy=none"
                                  "ASAN_OPTIONS=detect_leaks=0")  # MPI libraries keep memory until the end

# Builds what the thread sanitizer can judge: ranks as threads only, as MPI libraries are not built for it.
add_custom_target(tsan_tests)

# lockstep_add_test_program(<name> SOURCES ... LIBRARIES ...): tests/ is its include root beside src/. What a test itself
# does takes little time, so it is hardly optimized: that builds sooner.
function(lockstep_add_test_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBRARIES")
  lockstep_reject_unparsed(lockstep_add_test_program "${arg_UNPARSED_ARGUMENTS}")
  add_executable(${name} ${arg_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE ${arg_LIBRARIES} lockstep_options)
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  if(LOCKSTEP_SANITIZE)
    target_compile_options(${name} PRIVATE -O0)
  endif()
endfunction()

# lockstep_add_unit_test(<name> SOURCES ... LIBRARIES ... [LABELS ...] [TIMEOUT <s>]): GoogleTest, no launcher.
function(lockstep_add_unit_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "SOURCES;LIBRARIES;LABELS")
  lockstep_reject_unparsed(lockstep_add_unit_test "${arg_UNPARSED_ARGUMENTS}")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  lockstep_add_test_program(${name} SOURCES ${arg_SOURCES} LIBRARIES ${arg_LIBRARIES} GTest::gtest_main)
  if("tsan" IN_LIST arg_LABELS)
    add_dependencies(tsan_tests ${name})
  endif()
  add_test(NAME unit.${name} COMMAND ${name})
  set_tests_properties(unit.${name} PROPERTIES LABELS "unit;${arg_LABELS}" TIMEOUT ${arg_TIMEOUT})
endfunction()

# lockstep_add_mpi_test(<name> COMMAND ... RANKS 1 2 3 4 [LABELS ...] [TIMEOUT <s>] [ENVIRONMENT ...]): one test per rank count.
function(lockstep_add_mpi_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "COMMAND;RANKS;LABELS;ENVIRONMENT")
  lockstep_reject_unparsed(lockstep_add_mpi_test "${arg_UNPARSED_ARGUMENTS}")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  separate_arguments(preflags UNIX_COMMAND "${MPIEXEC_PREFLAGS}")
  foreach(n IN LISTS arg_RANKS)
    add_test(NAME mpi.${name}.np${n} COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${n} ${preflags} ${arg_COMMAND})
    set_tests_properties(mpi.${name}.np${n} PROPERTIES LABELS "mpi;np${n};${arg_LABELS}" PROCESSORS ${n} TIMEOUT ${arg_TIMEOUT}
                         SKIP_RETURN_CODE 77 ENVIRONMENT "${LOCKSTEP_MPI_TEST_ENVIRONMENT};${arg_ENVIRONMENT}")
  endforeach()
endfunction()
