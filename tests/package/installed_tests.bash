#!/usr/bin/env bash
# installed_tests.bash BUILD: the installed tests, on two ranks of this machine and under a launcher. A test that must
# fail does.
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
compgen -G "lockstep-tests-*/run/status.json" >/dev/null || fail "results are not in that folder"

# Plain ctest finds them, too; then only its own log is in the installation.
plain=$folder/prefix/share/lockstep/tests
run ctest --test-dir "$plain" --show-only
expect_out '^Total Tests: 5$'
rm -r lockstep-tests-*
run ctest --test-dir "$plain" -R '^train$'
expect_rc 0
expect_out '100% tests passed, 0 tests failed out of 1'
compgen -G "lockstep-tests-*/run/status.json" >/dev/null || fail "results are not in the working folder"
[ "$(ls "$plain")" = "$(printf 'CTestTestfile.cmake\nTesting\nrun')" ] || fail "the installation has new files"

# Under a launcher, whose ranks are counted.
export LOCKSTEP_LAUNCHER="$MPIEXEC $MPIEXEC_NUMPROC_FLAG 2 ${MPIEXEC_PREFLAGS:-}"
run "$tests"
expect_rc 2
expect_err 'but LOCKSTEP_RANKS is not \(fix: export LOCKSTEP_RANKS=N\)'
run ctest --test-dir "$plain" --show-only
[ "$rc" -ne 0 ] || fail "any number of ranks will do"
expect_err 'fix: export LOCKSTEP_RANKS=N'
LOCKSTEP_RANKS=3 run "$tests" -R '^train$'
expect_rc 1
expect_out 'the job has 2 ranks'
unset LOCKSTEP_LAUNCHER

# Folders are named by the second; here a clock stands still.
mkdir "$folder/bin"
printf '#!/bin/sh\necho 2026-01-02-030405\n' >"$folder/bin/date"
chmod +x "$folder/bin/date"
for _ in 1 2 3; do
  PATH=$folder/bin:$PATH run "$tests" -R '^none$'
  expect_rc 1
done
[ "$(ls -d lockstep-tests-2026-01-02-*)" = "$(printf 'lockstep-tests-2026-01-02-030405%s\n' '' -2 -3)" ] || fail "folders: $(ls)"

# Another run measures again.
echo '{"meta": {"arguments": ["-b", "8", "-e", "1K", "--json", "b.json", "--csv=b.csv", "--algorithm", "ring", "--expect-ranks", "2"]}}' >b.json
LOCKSTEP_BASELINE=b.json run ctest --test-dir "$plain" --show-only=human -V -R before
grep -qF "\"-b\" \"8\" \"-e\" \"1K\" \"--algorithm\" \"ring\" \"--baseline\" \"$PWD/b.json\" \"--junit\"" "$folder/out" || fail "other sizes"
LOCKSTEP_BASELINE=none.json run ctest --test-dir "$plain" --show-only
[ "$rc" -ne 0 ] || fail "a baseline that is not there will do"
expect_err "none.json' is" # CMake may break lines anywhere
run "$tests" -R 'no such test'
expect_rc 1
cd /proc && run "$tests" 
expect_rc 2
expect_err 'error: cannot make .* \(fix: run this in a folder of your own\)'
