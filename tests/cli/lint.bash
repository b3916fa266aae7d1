#!/usr/bin/env bash
# lint, and batch/check, which finds the program and prints the same. The shipped scripts are clean. tests/program has
# what lint finds.
. "$(dirname "$0")/lib.bash"
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root/tests/program/scripts" || exit 1

run "$REDUCE_ALL" lint delta/slurm_script.slurm delta/clean.sbatch
expect_rc 1
[ -s "$folder/err" ] && fail "nothing belongs on stderr"
cp "$folder/out" "$folder/lint_out"
LOCKSTEP=$REDUCE_ALL run "$root/batch/check" delta/slurm_script.slurm delta/clean.sbatch
expect_rc 1
cmp -s "$folder/out" "$folder/lint_out" || fail "check says something else"
mkdir -p "$folder"/prefix/{bin,share/lockstep/batch/lib}
ln -s "$REDUCE_ALL" "$folder/prefix/bin/lockstep"
cp "$root/batch/check" "$folder/prefix/share/lockstep/batch/"
cp "$root/batch/lib/find_program.sh" "$folder/prefix/share/lockstep/batch/lib/"
run "$folder/prefix/share/lockstep/batch/check" --site delta delta/clean.sbatch
expect_rc 0
LOCKSTEP=/not/there run "$root/batch/check" delta/clean.sbatch
expect_rc 2
expect_err 'cannot find lockstep'

run "$REDUCE_ALL" lint not_there.sbatch
expect_rc 2
expect_one_error

run "$REDUCE_ALL" lint delta/slurm_script.slurm delta/clean.sbatch --json "$folder/f.json"
if python3 -c 'import jsonschema' 2>/dev/null; then
  python3 - "$root/share/schemas/lint-1.schema.json" "$folder/f.json" <<'PY' || fail "not the JSON it should be"
import json, jsonschema, sys
schema, document = (json.load(open(path)) for path in sys.argv[1:])
jsonschema.Draft202012Validator(schema).validate(document)
first, second = document["scripts"]
assert not document["clean"] and first["site"] == "delta" and second["findings"] == [], document
assert sum(document["counts"].values()) == len(first["findings"]), document["counts"]
assert any(one["line"] == 12 and one["severity"] == "error" for one in first["findings"]), first
PY
fi

shopt -s nullglob
shipped=("$root"/batch/*/*.sbatch "$root"/batch/*/*.pbs)
if ((${#shipped[@]})); then
  run "$REDUCE_ALL" lint "${shipped[@]}"
  expect_rc 0
fi
