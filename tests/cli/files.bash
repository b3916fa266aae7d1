#!/usr/bin/env bash
# JSON and CSV: valid against the schema, an entry per row of the table, samples on request. Skipped without Python.
. "$(dirname "$0")/lib.bash"
here=$(dirname "$0")
python3 -c 'import jsonschema' 2>/dev/null || { echo "python3 with jsonschema is missing"; exit 77; }
validate() { python3 "$here/validate.py" "$SCHEMA" "$@" || fail "not as the schema says"; }

launch 2 -e 64 -f 8 -n 10 -d float32,int8 -o sum,avg --json "$folder/r.json" --csv "$folder/r.csv"
expect_rc 0
n_rows=$(grep -cE '^ +[0-9]+ +[0-9]+ +(float32|int8) ' "$folder/out")
validate "$folder/r.json" complete rows="$n_rows"
[ "$(wc -l <"$folder/r.csv")" -eq $((n_rows + 1)) ] || fail "CSV has another number of rows"
awk -F, 'NR == 1 { n = NF } NF != n { exit 1 }' "$folder/r.csv" || fail "a CSV line has another number of fields"

launch 1 -e 8 -n 3 --samples --json "$folder/r.json"
expect_rc 0
validate "$folder/r.json" complete samples=3
launch 2 --collective all_gather -e 8 -n 120 --in-place --json "$folder/r.json"
expect_rc 0
validate "$folder/r.json" complete

# --max-time: what is there is valid, and the table says what is missing.
launch 2 --max-time 10ms -e 1K -n 100 --json "$folder/r.json" --csv "$folder/r.csv"
expect_rc 0
expect_out '^# not complete: --max-time .* from .* on'
expect_out '^# Avg bus bandwidth    : '
validate "$folder/r.json" incomplete

# In the middle of the first size too: its row says how many samples there are.
SECONDS=0
launch 2 --max-time 1s -b 1M -e 1M -n 3000000 --algorithm shm --json "$folder/r.json"
[ "$SECONDS" -lt 60 ] || fail "--max-time did not end the size in hand"
expect_rc 0
expect_out '^# not complete: --max-time .* fewer iterations'
expect_out ' 1048576 .* shm '
validate "$folder/r.json" incomplete

# Results that do not get out are an error.
[ -w /dev/full ] || exit 0
# Nor are they lost where descriptors are closed, whose numbers other files would get.
for nproc in '' '--nproc 2'; do
  # shellcheck disable=SC2016,SC2086  # it is the other shell's; words
  run bash -c '"$@" <&- >&-' bash "$REDUCE_ALL" -e 8 -n 3 $nproc
  expect_rc 3
  expect_one_error
  expect_err 'cannot write to stdout: Bad file descriptor'
done
for nproc in '' '--nproc 2'; do
  # shellcheck disable=SC2086  # words
  run_full "$REDUCE_ALL" -e 8 -n 3 $nproc
  expect_full
done
