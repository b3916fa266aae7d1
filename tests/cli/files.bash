#!/usr/bin/env bash
# JSON that follows its schema, of a whole run and of an interrupted one, and results that cannot be written.
# tests/program has what the files contain. Skipped without Python.
. "$(dirname "$0")/lib.bash"
here=$(dirname "$0")
python3 -c 'import jsonschema' 2>/dev/null || { echo "python3 with jsonschema is missing"; exit 77; }
validate() { python3 "$here/validate.py" "$SCHEMA" "$folder/r.json" "$@" || fail "not as the schema says"; }

launch 2 -e 64 -f 8 -n 4 -d float32,int8 -o avg --algorithm ring,mpi --samples --visits 1 --json "$folder/r.json" --csv "$folder/r.csv"
expect_rc 0
n_rows=$(grep -cE '^ +[0-9]+ +[0-9]+ +(float32|int8) ' "$folder/out")
validate complete rows="$n_rows" samples=4
awk -F, 'NR == 1 { n = NF } NF != n { exit 1 }' "$folder/r.csv" || fail "a CSV line has another number of fields"
launch 2 --collective all_gather -e 1K -f 128 -n 100 --in-place --max-time 1ms --visits 1 --json "$folder/r.json"
expect_rc 0
validate incomplete

# Results that cannot be written are an error.
[ -w /dev/full ] || exit 0
# Results are not lost if descriptors are closed whose numbers other files would get.
for nproc in '' '--nproc 2'; do
  # shellcheck disable=SC2016,SC2086  # it is the other shell's; words
  run bash -c '"$@" <&- >&-' bash "$REDUCE_ALL" -e 8 -n 3 $nproc
  expect_rc 3
  expect_one_error
  expect_err 'cannot write to stdout: Bad file descriptor'
  # shellcheck disable=SC2086  # words
  run_full "$REDUCE_ALL" -e 8 -n 3 $nproc
  expect_full
done
