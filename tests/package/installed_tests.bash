#!/usr/bin/env bash
# installed_tests.bash BUILD: the tests that are installed, on two ranks of this machine and by a launcher; one that must fail does.
. "$(dirname "$0")/../cli/lib.bash"
run cmake --install "$1" --prefix "$folder/prefix"
expect_rc 0
tests=$folder/prefix/share/lockstep/tests/run
mkdir "$folder/work"
cd "$folder/work" || exit 1
run "$tests" -E reduce_all
expect_rc 0
expect_out '100% tests passed, 0 tests failed out of 4'
compgen -G 'lockstep-tests-*/tests.xml' >/dev/null || fail "no report for continuous integration"
sleep 1 # the folder is named by the second
LOCKSTEP_LAUNCHER="$MPIEXEC $MPIEXEC_NUMPROC_FLAG 2 ${MPIEXEC_PREFLAGS:-}" LOCKSTEP_RANKS=3 run "$tests" -R '^train$'
expect_rc 1
expect_out 'the job has 2 ranks'
sleep 1
run "$tests" -R 'no such test'
expect_rc 1
cd /proc && run "$tests" 
expect_rc 2
expect_err 'error: cannot make .* \(fix: run this in a folder of your own\)'
