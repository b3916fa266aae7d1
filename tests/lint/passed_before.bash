#!/usr/bin/env bash
# Which tests in_own_folder runs again: those of which anything that they read has changed since they passed, those that failed, and those
# that read sources.
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

# expect yes|no WHAT COMMAND...: whether it runs.
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
for _ in 1 2; do CODE=1 LOCKSTEP_CODE=1 expect yes "it fails" "$program" x; done
[[ $status == 1 ]] || { echo "FAILED: exit status $status" && exit 1; }
for _ in 1 2; do CODE=77 LOCKSTEP_CODE=77 expect yes "it skips itself" "$program" x; done
for _ in 1 2; do expect yes "it reads sources" bash -c "echo ran >'$build/runs'"; done
unset LOCKSTEP_PASSED
for _ in 1 2; do expect yes "nobody asked" "$program" x; done
