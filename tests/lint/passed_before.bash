#!/usr/bin/env bash
# Tests which tests in_own_folder runs again: those that read anything which has changed since they passed, those that
# failed, and those that read sources.
set -u
tests=$(dirname -- "$(dirname -- "$(readlink -f -- "$0")")")
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
mkdir "$build/bin" "$build/passed"
export LOCKSTEP_PASSED=$build/passed LOCKSTEP_PASSED_WITH=1
unset REDUCE_ALL OMP_NUM_THREADS
program=$build/bin/a_test
printf '#!/bin/sh\necho ran >>"%s/runs"\nexit ${CODE:-0}\n' "$build" >"$program"
chmod +x "$program"
cp "$program" "$build/bin/lockstep"

# expect yes|no WHAT COMMAND...: expects that it runs, or not.
expect() {
  local found=no expected=$1 what=$2
  shift 2
  rm -f "$build/runs"
  "$tests/support/in_own_folder" "$@" >"$build/out" 2>&1
  status=$?
  [[ ! -e $build/runs ]] || found=yes
  [[ $found == "$expected" ]] || { echo "FAILED: $what: runs: $found" && exit 1; }
}
expect yes "the first time" "$program" x
expect no "nothing has changed" "$program" x
grep -qx '\[passed before\]' "$build/out" || { echo "FAILED: not told" && exit 1; }
expect yes "another argument" "$program" y
OMP_NUM_THREADS=2 expect yes "another variable" "$program" x
LOCKSTEP_PASSED_WITH=2 expect yes "another system" "$program" x
REDUCE_ALL=$build/bin/lockstep expect yes "a program in a variable" "$program" x
REDUCE_ALL=$build/bin/lockstep expect no "the same program in a variable" "$program" x
echo '# changed' >>"$build/bin/lockstep"
REDUCE_ALL=$build/bin/lockstep expect yes "it has changed" "$program" x
expect yes "a launcher" env "$program" x
expect no "the same launcher" env "$program" x
echo '# changed' >>"$program"
expect yes "the program has changed" "$program" x
mkdir "$build/driver" && echo 1 >"$build/driver/lib"
A_FOLDER=$build/driver expect yes "a folder in a variable" "$program" x
A_FOLDER=$build/driver expect no "the same folder in a variable" "$program" x
echo 2 >"$build/driver/lib"
A_FOLDER=$build/driver expect yes "a file in it has changed" "$program" x
# Sources count for tests of the installation, which consists of them.
digest_with() {
  (. "$tests/support/passed_before" && LOCKSTEP_SOURCES=$1 inputs_of "${@:2}")
}
for script in package/a.bash cli/a.bash; do
  one=$(digest_with 1 bash "$tests/$script" x) two=$(digest_with 2 bash "$tests/$script" x)
  [[ $one && $script:$([[ $one == "$two" ]] && echo same || echo other) == @(package*other|cli*same) ]] ||
    { echo "FAILED: sources and $script" && exit 1; }
done

# Skipped cases are reported again.
printf '#!/bin/sh\necho ran >>"%s/runs"\nprintf "x.cpp:3: Skipped\\nno slope\\n\\n[  SKIPPED ] A.b (0 ms)\\n"\n' "$build" >"$program"
for runs in yes no; do
  expect $runs "it skips cases" "$program" x
  printf 'x.cpp:3: Skipped\nno slope\n[  SKIPPED ] A.b (0 ms)\n' >"$build/expected"
  grep -A 1 -E 'Skipped$|SKIPPED' "$build/out" | grep -E 'Skipped|slope|SKIPPED' | diff - "$build/expected" || { echo "FAILED: skips are not told" && exit 1; }
done
printf '#!/bin/sh\necho ran >>"%s/runs"\nexit ${CODE:-0}\n' "$build" >"$program"
for _ in 1 2; do CODE=1 LOCKSTEP_CODE=1 expect yes "it fails" "$program" x; done
[[ $status == 1 ]] || { echo "FAILED: exit status $status" && exit 1; }
for _ in 1 2; do CODE=77 LOCKSTEP_CODE=77 expect yes "it skips itself" "$program" x; done
for _ in 1 2; do expect yes "it reads sources" bash -c "echo ran >'$build/runs'"; done
unset LOCKSTEP_PASSED
for _ in 1 2; do expect yes "nobody asked" "$program" x; done
