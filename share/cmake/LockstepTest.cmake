# Registers tests. Names: <kind>.<what>[.np<n>]. Labels: the kind, np<n> and the given ones.

# Time limits are for hangs, not for slowness: about five times the slowest test on the slowest machine seen.
set(LOCKSTEP_TEST_TIMEOUT 600)
set(LOCKSTEP_LONG_TEST_TIMEOUT 7200)

# lockstep_add_test(<name> COMMAND ... [LONG] [LABELS ...] [USES <cores>|wait] [LASTS <seconds>] [ENVIRONMENT ...]
# [WORKING_DIRECTORY <folder>]): adds a test with its own temporary folder and a time limit. A test that cannot run on a
# machine exits with 77, and its last line says why. LONG: has that label, and runs in `bootstrap check-long` alone.
# USES: how many cores it keeps busy (1), or wait: less than half of one; the last line of its log shows it. LASTS:
# about how many seconds a long test takes; the longest begin first.
function(lockstep_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "LONG" "USES;LASTS;WORKING_DIRECTORY" "COMMAND;LABELS;ENVIRONMENT")
  lockstep_reject_unparsed(lockstep_add_test "${arg_UNPARSED_ARGUMENTS}")
  if(NOT arg_USES)
    set(arg_USES 1)
  endif()
  if(NOT arg_LASTS)
    set(arg_LASTS 0)
  endif()
  # CTest counts thirds of cores, so that tests which wait run beside those that compute: ctest -j <three times the
  # cores>.
  set(thirds 1)
  if(NOT arg_USES STREQUAL "wait")
    math(EXPR thirds "3 * ${arg_USES}")
  endif()
  set(timeout ${LOCKSTEP_TEST_TIMEOUT})
  if(arg_LONG)
    list(APPEND arg_LABELS long)
    set(timeout ${LOCKSTEP_LONG_TEST_TIMEOUT})
  endif()
  add_test(NAME ${name} COMMAND ${PROJECT_SOURCE_DIR}/tests/support/in_own_folder ${arg_COMMAND})
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" ENVIRONMENT "${arg_ENVIRONMENT}" COST ${arg_LASTS}
                                          TIMEOUT ${timeout} SKIP_RETURN_CODE 77 PROCESSORS ${thirds})
  if(arg_WORKING_DIRECTORY)
    file(MAKE_DIRECTORY ${arg_WORKING_DIRECTORY})
    set_tests_properties(${name} PROPERTIES WORKING_DIRECTORY ${arg_WORKING_DIRECTORY})
  endif()
endfunction()

# The environment that every MPI test gives its launcher. Other MPIs ignore it: OMPI_MCA_ is for Open MPI 4, PRTE_MCA_
# for Open MPI 5.
set(LOCKSTEP_MPI_TEST_ENVIRONMENT "OMP_NUM_THREADS=1;OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"
                                  "OMPI_MCA_rmaps_base_oversubscribe=1;OMPI_MCA_hwloc_base_binding_policy=none;OMPI_MCA_mpi_yield_when_idle=1"
                                  "PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe"
                                  "PRTE_MCA_hwloc_default_binding_policy=none"
                                  "GTEST_COLOR=no"  # launchers give ranks a terminal, and `skipped` reads their output
                                  "ASAN_OPTIONS=detect_leaks=0")  # MPI libraries keep memory until the end

# For scripts that start ranks themselves: the launcher, too.
set(LOCKSTEP_LAUNCHER_TEST_ENVIRONMENT
    "${LOCKSTEP_MPI_TEST_ENVIRONMENT};MPIEXEC=${MPIEXEC_EXECUTABLE};MPIEXEC_NUMPROC_FLAG=${MPIEXEC_NUMPROC_FLAG}"
    "MPIEXEC_PREFLAGS=${MPIEXEC_PREFLAGS}")

# Builds what the address sanitizer checks: unit tests, MPI tests, and the programs of cli tests with the label
# sanitized.
add_custom_target(sanitized_tests)

# Builds what the thread sanitizer can check: ranks as threads only, because MPI libraries are not built for it.
add_custom_target(tsan_tests)

# lockstep_add_test_objects(<name> SOURCES ... LIBRARIES ...): adds objects that several test programs link. Their
# include roots are tests/ and src/. Tests themselves compute little, so they are hardly optimized, and not at all under
# the address sanitizer: that builds sooner. Under the thread sanitizer they are, because the tests of parallel/ would
# take twice as long: they COMPUTE.
function(lockstep_add_test_objects name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBRARIES")
  lockstep_reject_unparsed(lockstep_add_test_objects "${arg_UNPARSED_ARGUMENTS}")
  add_library(${name} OBJECT EXCLUDE_FROM_ALL ${arg_SOURCES})
  _lockstep_set_up_test_code(${name} ON PUBLIC ${arg_LIBRARIES} GTest::gtest)
endfunction()

# lockstep_add_test_program(<name> SOURCES ... LIBRARIES ... [COMPUTES]): the same, with a main(). It is optimized only
# if it COMPUTES: otherwise it would take more time than its compilation saves.
function(lockstep_add_test_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "COMPUTES" "" "SOURCES;LIBRARIES")
  lockstep_reject_unparsed(lockstep_add_test_program "${arg_UNPARSED_ARGUMENTS}")
  add_executable(${name} ${arg_SOURCES})
  _lockstep_set_up_test_code(${name} ${arg_COMPUTES} PRIVATE ${arg_LIBRARIES})
  if(NOT name STREQUAL "lockstep_test_headers" AND NOT arg_COMPUTES)  # the headers are for code that is not optimized
    target_precompile_headers(${name} REUSE_FROM lockstep_test_headers)
  endif()
endfunction()

function(_lockstep_set_up_test_code name computes scope)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} ${scope} ${ARGN} PRIVATE lockstep_options)
  target_compile_definitions(${name} PRIVATE GTEST_HAS_PTHREAD=1)  # as in the precompiled headers
  if(NOT computes OR NOT LOCKSTEP_SANITIZE MATCHES "thread")
    lockstep_optimize_less(${name} ${computes})
  endif()
endfunction()

# lockstep_add_unit_test(<name> SOURCES ... LIBRARIES ... [LABELS ...] [COMPUTES] [LONG_CASES] [NOT_SANITIZED <pattern>
# ...]): adds a test of GoogleTest without a launcher. LONG_CASES: long.<name> runs the cases whose names begin with
# DISABLED_. NOT_SANITIZED: cases that take minutes under a sanitizer and add no coverage there.
function(lockstep_add_unit_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "COMPUTES;LONG_CASES" "" "SOURCES;LIBRARIES;LABELS;NOT_SANITIZED")
  lockstep_reject_unparsed(lockstep_add_unit_test "${arg_UNPARSED_ARGUMENTS}")
  set(computes "")
  if(arg_COMPUTES)
    set(computes COMPUTES)
  endif()
  lockstep_add_test_program(${name} SOURCES ${arg_SOURCES} LIBRARIES ${arg_LIBRARIES} GTest::gtest_main ${computes})
  add_dependencies(sanitized_tests ${name})
  if("tsan" IN_LIST arg_LABELS)
    add_dependencies(tsan_tests ${name})
  endif()
  set(filter "")
  if(LOCKSTEP_SANITIZE AND arg_NOT_SANITIZED)
    list(JOIN arg_NOT_SANITIZED ":" filter)
    string(PREPEND filter "--gtest_filter=-")
  endif()
  lockstep_add_test(unit.${name} COMMAND $<TARGET_FILE:${name}> ${filter} LABELS unit ${arg_LABELS})
  if(arg_LONG_CASES)
    lockstep_add_test(long.${name} LONG
      COMMAND $<TARGET_FILE:${name}> --gtest_also_run_disabled_tests --gtest_filter=*DISABLED_* LABELS ${arg_LABELS})
  endif()
endfunction()

# Builds what the tests of MPI need.
add_custom_target(mpi_tests)

# lockstep_add_mpi_test(<name> PROGRAM <target> RANKS 1 2 3 4 [LONG] [ARGUMENTS ...] [LABELS ...]): adds one test for
# each number of ranks.
function(lockstep_add_mpi_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "LONG" "PROGRAM" "RANKS;ARGUMENTS;LABELS")
  lockstep_reject_unparsed(lockstep_add_mpi_test "${arg_UNPARSED_ARGUMENTS}")
  add_dependencies(mpi_tests ${arg_PROGRAM})
  add_dependencies(sanitized_tests ${arg_PROGRAM})
  separate_arguments(preflags UNIX_COMMAND "${MPIEXEC_PREFLAGS}")
  set(long "")
  if(arg_LONG)
    set(long LONG)
  endif()
  foreach(n IN LISTS arg_RANKS)
    lockstep_add_test(mpi.${name}.np${n} ${long}
      COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${n} ${preflags} $<TARGET_FILE:${arg_PROGRAM}> ${arg_ARGUMENTS}
      LABELS mpi np${n} ${arg_LABELS}
      USES ${n}
      ENVIRONMENT ${LOCKSTEP_MPI_TEST_ENVIRONMENT})
  endforeach()
endfunction()
