#!/usr/bin/env bash
# Tests what `skipped` prints about a log of ctest: each test that has skipped itself, skipped cases of GoogleTest, and
# which may not.
set -u
unset LOCKSTEP_ON_CI  # which may be set for the whole check
skipped=$(dirname -- "$0")/../support/skipped
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# log NAME LINE...: writes a test into the log as ctest does.
log() {
  printf '%s\n' "1/4 Testing: $1" "1/4 Test: $1" "Command: \"x\"" "Output:" "-----" "${@:2}" "<end of output>" "Test Passed."
}
{
  log gpu.tests "a line" "no GPU: no driver | install one" "[skips itself]"
  log cli.passed "this was no reason to skip"
  log unit.cases "[ RUN      ] A.b" "/x.cpp:3: Skipped" "no slope" "" "[  SKIPPED ] A.b (0 ms)" "[ RUN      ] A.c" \
    "/x.cpp:3: Skipped" "no slope" "" "[  SKIPPED ] A.c (0 ms)" "[  SKIPPED ] 2 tests, listed below:" "[  SKIPPED ] A.c"
  log cli.files "python3 is missing" "[skips itself]"
  log cli.silent "[skips itself]"
} >"$folder/log"
printf '%s\n' '# comment' 'anywhere | gpu[.].* | ^no GPU' 'for users | cli[.]files | is missing$' 'anywhere  | unit[.]cases | ^no slope' \
  >"$folder/list"

# expect STATUS FILE: expects that exit status, and the output in FILE.
expect() {
  "$skipped" "$folder/log" "$folder/list" >"$folder/out"
  local status=$?
  diff "$folder/out" - && [ $status -eq "$1" ] || { echo "FAILED: exit status $status, expected $1" && exit 1; }
}

expect 1 <<END
skipped:
  gpu.tests: no GPU: no driver | install one
  unit.cases, 2 cases: no slope
  cli.files: python3 is missing
  cli.silent: no reason given   <-- NOT ALLOWED
FAILED: 1 skipped for reasons that $folder/list does not allow
END
LOCKSTEP_ON_CI=1 expect 1 <<END
skipped:
  gpu.tests: no GPU: no driver | install one
  unit.cases, 2 cases: no slope
  cli.files: python3 is missing   <-- NOT ALLOWED
  cli.silent: no reason given   <-- NOT ALLOWED
FAILED: 2 skipped for reasons that $folder/list does not allow here
END
echo 'anywhere | cli[.]silent | ^no reason given' >>"$folder/list"
expect 0 <<END
skipped:
  gpu.tests: no GPU: no driver | install one
  unit.cases, 2 cases: no slope
  cli.files: python3 is missing
  cli.silent: no reason given
END

: >"$folder/log"
expect 1 <<END
FAILED: the log names no test
END

# The list has each reason that a test prints, for any test.
tests=$(dirname -- "$0")/..
{
  grep -rhoE 'GTEST_SKIP\(\) << "[^"]+"' "$tests" --include=*.cpp | sed -E 's/.*<< "(.*)"/\1/'
  grep -rhoE 'echo "[^"$]+"( &&|;) exit 77' "$tests" --include=*.bash | sed -E 's/echo "([^"]*)".*/\1/'
} | awk '
  FILENAME != "-" { if (!/^#/ && NF) { split($0, cell, / +[|] +/); rules[++n_rules] = cell[3] }; next }
  { for (i = 1; i <= n_rules; ++i) if ($0 ~ rules[i]) { ++n_known; next }
    print "FAILED: tests/may_skip.txt does not have the reason: " $0; exit 1 }
  END { exit n_known < 40 }' "$tests/may_skip.txt" - || exit 1
