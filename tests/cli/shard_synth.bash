#!/usr/bin/env bash
# A set made, described, checked, looked at; then damaged in every way a user meets.
. "$(dirname "$0")/shard_lib.bash"
d=$folder/d
schemas=$(dirname "$0")/../../share/schemas

# expect_schema SCHEMA FILE
expect_schema() {
  python3 -c 'import jsonschema' 2>/dev/null || return 0
  python3 - "$schemas/$1" "$2" <<'PY' || fail "$2 is not as $1 says"
import json, jsonschema, sys
schema, document = (json.load(open(file)) for file in sys.argv[1:])
jsonschema.Draft202012Validator.check_schema(schema)
jsonschema.Draft202012Validator(schema).validate(document)
PY
}

made synth digits --out "$d" --samples 3000 --shard-size 1M --chunk-size 128K
expect_out 'train 3000 in [0-9]+ shards, val 500 in 1 shard'
expect_schema shards-1.schema.json "$d/manifest.json"
made stat "$d"
expect_out 'x +uint8 \[28, 28\]'
expect_out '^ +train +3000 '
expect_out '^ +val +500 '
expect_out 'classes +10'
# Each class has its row, and the rows add up.
[ "$(grep -cE '^ +[0-9] +[^ ]+ +[0-9]+ +[0-9]+$' "$folder/out")" -eq 10 ] || fail "expected a row for each class"
[ "$(awk 'NF == 4 && $1 ~ /^[0-9]$/ { n += $3 + $4 } END { print n }' "$folder/out")" -eq 3500 ] ||
  fail "classes do not add up"
made stat "$d" --nproc 3
made stat "$d" --json
expect_schema shard_stat-1.schema.json "$folder/out"
if command -v python3 >/dev/null; then
  python3 - "$folder/out" <<'PY' || fail "not the JSON it should be"
import json, sys
s = json.load(open(sys.argv[1]))
assert s["x"] == {"dtype": "uint8", "shape": [28, 28]} and len(s["classes"]) == 10, s
assert [p["samples"] for p in s["splits"]] == [3000, 500], s
assert sum(s["splits"][0]["samples_by_class"]) == 3000, s
PY
fi
for n in 1 3; do
  made verify "$d" --nproc "$n"
  expect_out 'is whole: .* 3500 samples'
done
made head "$d" -n 2
[ "$(grep -c '^id ' "$folder/out")" -eq 2 ] || fail "expected two samples"
expect_out '^id 1 .*label [0-9] \(.*min 0'
[ "$(grep -cE '^.{56}$' "$folder/out")" -ge 56 ] || fail "expected two drawings"
made head "$d" --split val -n 1
shard head "$d" --split vall
expect_rc 2
expect_err 'val'

# One byte of data: chunk and samples are named, by any number of ranks.
cp -r "$d" "$folder/flipped"
flip "$folder/flipped/train-00000.h5" 300000
for n in 1 2; do
  shard verify "$folder/flipped" --nproc "$n"
  expect_rc 1
  expect_out 'train-00000.h5: .*chunk [0-9]+.*samples? [0-9]+'
  expect_out 'is damaged: [0-9]+ defect'
done
flip "$folder/flipped/train-00000.h5" 300000
made verify "$folder/flipped"

rm "$folder/flipped/val-00000.h5"
shard verify "$folder/flipped"
expect_rc 1
expect_out '^val-00000.h5: '
cp "$d/train-00000.h5" "$folder/flipped/val-00000.h5"
shard verify "$folder/flipped"
expect_rc 1
expect_out '^val-00000.h5: '
cp "$d/val-00000.h5" "$folder/flipped/val-00000.h5"
cp "$d/val-00000.h5" "$folder/flipped/surplus.h5"
shard verify "$folder/flipped"
expect_rc 1
expect_out '^surplus.h5: '
rm "$folder/flipped/surplus.h5"
truncate -s -1 "$folder/flipped/train-00001.h5"
shard verify "$folder/flipped"
expect_rc 1
expect_out '^train-00001.h5: '

# What is no file, or may not be read, hides no other damage.
rm "$folder/flipped/train-00000.h5"
mkfifo "$folder/flipped/train-00000.h5"
for n in 1 2; do
  shard verify "$folder/flipped" --nproc "$n"
  expect_rc 1
  expect_out '^train-00000.h5: a folder, a pipe or a device, no file'
  expect_out '^train-00001.h5: '
  expect_out 'is damaged: 2 defects'
done
rm "$folder/flipped/train-00000.h5"
cp "$d/train-00000.h5" "$folder/flipped"
ln -sf "$folder/flipped/round" "$folder/flipped/round"
ln -sf round "$folder/flipped/train-00000.h5"
shard verify "$folder/flipped"
expect_rc 1
expect_one_error
expect_err "cannot read '.*train-00000.h5'"
expect_out '^train-00001.h5: '
rm "$folder/flipped/round" "$folder/flipped/train-00000.h5"
cp "$d/train-00000.h5" "$folder/flipped"

# Damage in what is read stops the reader too.
cp "$d/train-00001.h5" "$folder/flipped/train-00001.h5"
flip "$folder/flipped/train-00000.h5" 8192
shard pack "$folder/flipped" --out "$folder/again"
expect_rc 1
expect_one_error
expect_nothing_left "$folder/again"

flip "$folder/flipped/manifest.json" 40
shard stat "$folder/flipped"
[ "$rc" -ne 0 ] || fail "a damaged manifest was accepted"
expect_one_error
expect_err 'manifest'

for kind in toy ratings; do
  made synth "$kind" --out "$folder/$kind" --samples 500
  made verify "$folder/$kind"
  made head "$folder/$kind"
  made stat "$folder/$kind" --json
  expect_schema shard_stat-1.schema.json "$folder/out"
done
made synth images --out "$folder/images" --samples 40 --height 8 --width 12 --classes 3 --channels 1
made stat "$folder/images"
expect_out '\[8, 12, 1\]'
made verify "$folder/images"

if command -v h5dump >/dev/null; then
  run h5dump -H "$d"/*.h5
  expect_rc 0
  expect_out 'DATASET "x"'
  run h5dump -d /id -c 4 "$d/train-00000.h5"
  expect_rc 0
  expect_out '0, 1, 2, 3'
fi
