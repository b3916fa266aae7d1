#!/usr/bin/env bash
# The gate: what is not slower passes, what has become slower fails and is named; what does not compare is refused.
. "$(dirname "$0")/lib.bash"
here=$(dirname "$0")
# Each run by itself, not in blocks, which would take long where cores are shared.
small="-b 64K -e 256K -f 4 --algorithm ring,shm -n 10 --visits 8"

# Allowed to take eleven times as long: other work of a busy machine does not make it that. Where the machine moves cores between
# two launches, visits do not compare: a few tries of both, here and below.
for try in 1 2 3 4 5; do
  # shellcheck disable=SC2086  # words are words
  launch 2 $small --json "$folder/base.json"
  expect_rc 0
  expect_out '^# for comparisons every size is visited 8 times more'
  [ "$(grep -c '"core_round_trip_ns":\[' "$folder/base.json")" -eq 4 ] || fail "the file does not hold visits of all rows"
  # shellcheck disable=SC2086
  launch 2 $small --baseline "$folder/base.json" --tolerance 1000 --json "$folder/now.json" --junit "$folder/now.xml"
  expect_rc 0
  grep -q '^# all rows together: [+-]' "$folder/out" && break
done
expect_out '^# now \(1 launch\) against .*base.json \(1 launch\)'
expect_out '^# Regression           : nothing is known to be slower by more than 1000 %'
expect_out '^# all rows together: [+-][0-9.]+ %, 95 % interval'
grep -q '<testsuite name="reduce_all" tests="5" failures="0"' "$folder/now.xml" || fail "JUnit's file"

# A rank that takes four times as long.
for try in 1 2 3 4 5; do
  # shellcheck disable=SC2086
  launch 2 $small --json "$folder/base.json"
  # shellcheck disable=SC2086
  launch 2 $small --baseline "$folder/base.json" --inject slow:1:300 --json "$folder/slow.json" --junit "$folder/slow.xml"
  [ "$rc" -eq 1 ] && break
  echo "try $try: $(tail -n 1 "$folder/out")"
done
expect_rc 1
expect_out '^# Regression           : SLOWER by more than 5 %: .*(ring|shm) float32 sum at (64|256) KiB'
grep -q '<failure type="slower" message="slower by more than 5 %: +' "$folder/slow.xml" || fail "JUnit does not name it"
grep -q '"slower": true' "$folder/slow.json" || fail "the JSON file does not tell"
if python3 -c 'import jsonschema' 2>/dev/null; then
  for file in base now slow; do
    python3 "$here/validate.py" "$SCHEMA" "$folder/$file.json" complete || fail "$file.json is not as the schema says"
  done
  python3 -c 'import sys, xml.etree.ElementTree as x; assert len(x.parse(sys.argv[1]).findall(".//failure")) > 0' \
    "$folder/slow.xml" || fail "JUnit's file is not well-formed"
fi

# Several launches; sizes of one side only are named.
launch 2 -b 256K -e 1M -f 4 --algorithm ring,shm -n 10 --visits 2 --baseline "$folder/base.json,$folder/now.json" --tolerance 1000
expect_rc 0
expect_out '^# now \(1 launch\) against .* \(2 launches\)'
expect_out '^# not in the baseline: ring float32 sum at 1 MiB; shm float32 sum at 1 MiB$'

# Files that are there are compared without measuring, and without MPI.
run "$REDUCE_ALL" --baseline "$folder/base.json" --now "$folder/slow.json,$folder/now.json" --tolerance 1000
expect_rc 0
expect_out '^# now \(2 launches\) against .*base.json \(1 launch\)'
run "$REDUCE_ALL" --baseline "$folder/base.json" --now "$folder/slow.json" --junit "$folder/files.xml"
expect_rc 1
grep -q '<failure type="slower"' "$folder/files.xml" || fail "JUnit does not name it"
run "$REDUCE_ALL" --baseline "$folder/base.json" --now "$folder/slow.json" -b 8
expect_rc 2
expect_err 'nothing is measured'

# What time is up before does not pass.
launch 2 -b 64K -e 256K -f 4 --algorithm ring,shm -n 1000000 --max-time 1s --baseline "$folder/base.json" --junit "$folder/cut.xml"
expect_rc 1
expect_out '^# Regression           : UNFINISHED: the run ended before [0-9] of 4 rows'
grep -q 'type="unfinished"' "$folder/cut.xml" || fail "JUnit does not name it"

# refuse MESSAGE RANKS ARGUMENTS...: one message, exit code 2, nothing measured, nothing written.
refuse() {
  local message=$1 n=$2
  shift 2
  rm -f "$folder/new.json"
  # shellcheck disable=SC2086
  launch "$n" $small --json "$folder/new.json" "$@"
  expect_rc 2
  expect_one_error
  expect_err "$message"
  grep -q 'float32' "$folder/out" && fail "something was measured"
  [ ! -e "$folder/new.json" ] || fail "something was written"
}
refuse 'measured on something else: in this run ranks is 3, not 2' 3 --baseline "$folder/base.json"
refuse 'buffers is cold, not hot' 2 --baseline "$folder/base.json" --buffers cold
sed 's/"schema_version": 1/"schema_version": 7/' "$folder/base.json" >"$folder/other.json"
refuse 'its schema is lockstep.reduce_all, version 7' 2 --baseline "$folder/other.json"
sed 's/"cpu_model": "[^"]*"/"cpu_model": "6502"/' "$folder/base.json" >"$folder/other.json"
refuse 'cpu_model is .*, not 6502' 2 --baseline "$folder/other.json"
head -c 3000 "$folder/base.json" >"$folder/other.json"
refuse 'other.json: is no JSON' 3 --baseline "$folder/other.json"
sed 's/"time_us":\[[0-9.e+-]*/"time_us":["x"/' "$folder/base.json" >"$folder/other.json"
refuse 'visits\[0\].time_us\[0\] is string' 2 --baseline "$folder/other.json"
# shellcheck disable=SC2086
launch 2 $small --json "$folder/other.json" --visits 0
expect_rc 0
refuse 'holds no visits' 2 --baseline "$folder/other.json"
refuse 'nothing of the baseline would be measured' 2 --baseline "$folder/base.json" -b 8 -e 8
refuse "base.json' is named twice" 2 --baseline "$folder/base.json,$folder/./base.json"
refuse "base.json' would be overwritten" 2 --baseline "$folder/base.json" --junit "$folder/base.json"
refuse 'it is no regular file' 2 --baseline "$folder"
refuse 'it is no regular file' 2 --baseline /dev/zero
refuse "cannot read '.*/none.json': No such file" 2 --baseline "$folder/base.json,$folder/none.json"
refuse 'cannot write' 2 --baseline "$folder/base.json" --junit "$folder/none/x.xml"
