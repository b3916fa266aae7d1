#!/usr/bin/env bash
# A launched comparison: exit codes, and files that follow their schema. Times of the baseline are made up, so speed
# decides nothing. tests/program has what is compared and refused.
. "$(dirname "$0")/lib.bash"
here=$(dirname "$0")
small="-b 64 -e 256 -f 4 --algorithm ring,shm -n 10 --visits 5 --inject move:1000000"

# with_times EXPONENT: prints the baseline with times of that exponent instead of its own.
with_times() {
  local t=1e$1
  sed -E "s/(\"time_us\":\[)[^]]*/\1$t,$t,$t,$t,$t/" "$folder/base.json" >"$folder/times.json"
}

# shellcheck disable=SC2086  # words are words
launch 2 $small --json "$folder/base.json"
expect_rc 0
with_times -9
# shellcheck disable=SC2086
launch 2 $small --baseline "$folder/times.json" --json "$folder/slow.json" --junit "$folder/slow.xml"
expect_rc 1
expect_out '^# Regression           : SLOWER by more than 5 %: ring float32 sum at 64 B'
with_times 9
run "$REDUCE_ALL" --baseline "$folder/times.json" --now "$folder/slow.json"
expect_rc 0
expect_out '^# Regression           : nothing is known to be slower'
python3 -c 'import jsonschema' 2>/dev/null || exit 0
for file in base slow; do
  python3 "$here/validate.py" "$SCHEMA" "$folder/$file.json" complete || fail "$file.json is not as the schema says"
done
python3 -c 'import sys, xml.etree.ElementTree as x; assert len(x.parse(sys.argv[1]).findall(".//failure")) > 0' \
  "$folder/slow.xml" || fail "JUnit's file is not well-formed"
