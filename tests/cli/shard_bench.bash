#!/usr/bin/env bash
# bench: every stage is measured, for every order, cold and warm, and the JSON says so. No figure is judged here.
. "$(dirname "$0")/shard_lib.bash"
d=$folder/d
schemas=$(dirname "$0")/../../share/schemas
made synth digits --out "$d" --samples 4000 --chunk-size 256K
made pack "$d" --out "$d.zstd" --compress zstd

expect_report() {
  expect_rc 0
  for stage in 'memory copy' 'pread alone' 'read, check' 'augment alone' 'whole path'; do expect_out "$stage"; done
  expect_out 'What binds: '
}

validate() {
  python3 - "$folder/b.json" "$@" "$schemas" <<'PY' || fail "not the JSON it should be"
import json, sys
b = json.load(open(sys.argv[1]))
ranks, cold = int(sys.argv[2]), sys.argv[3] == "cold"
assert b["schema"] == "lockstep.shard_bench" and b["schema_version"] == 1 and b["complete"], b
assert b["meta"]["ranks"] == ranks and b["meta"]["options"]["cold"] == cold, b["meta"]
assert [s["stage"] for s in b["stages"]] == ["copy", "pread", "read", "augment", "loader"], b["stages"]
for s in b["stages"]:
    assert s["repeats"] == 7, s
    assert 0 < s["samples_per_s_p50_low"] <= s["samples_per_s_p50"] <= s["samples_per_s_p50_high"], s
assert b["loader"]["crc_failures"] == 0, b["loader"]
assert b["binds"] in b["time_us_per_sample"], b
try:
    import jsonschema
except ImportError:
    sys.exit()
jsonschema.validate(b, json.load(open(sys.argv[4] + "/shard_bench-1.schema.json")))
PY
}

for n in 1 2; do
  made bench "$d" --nproc "$n" --seconds 0.3 --json "$folder/b.json"
  expect_report
  if command -v python3 >/dev/null; then validate "$n" warm; fi
done
for order in keyed torch blocked sequential; do
  made bench "$d.zstd" --order "$order" --seconds 0.15 --cache none --threads 1 --augment flip,normalize:0.5:0.25
  expect_report
done
made bench "$d" --cold --seconds 0.3 --layout nhwc --dtype bfloat16 --json "$folder/b.json"
expect_report
expect_out 'not read before'
if command -v python3 >/dev/null; then validate 1 cold; fi
made bench "$d" --epochs 2 --batch 100
expect_report
made synth ratings --out "$folder/r" --samples 2000
made bench "$folder/r" --seconds 0.1
expect_report

# From a copy on the node: made once, kept the next time, and apart from that of another set with the same names. The copy is
# read: its damage is noticed where nothing else is, and mended by the next run.
staged() {
  launch "$1" shard bench "$2" --stage "$folder/local" --cache none --seconds 0.07
  expect_report
}
copy_of() {
  local each
  for each in "$folder"/local/*; do
    if cmp -s "$each/manifest.json" "$1/manifest.json"; then echo "$each"; fi
  done
}
staged 2 "$d"
copy=$(copy_of "$d")
expect_same "$d" "$copy"
made synth digits --out "$folder/other" --samples 300 --seed 2
staged 1 "$folder/other"
expect_same "$folder/other" "$(copy_of "$folder/other")"
expect_same "$d" "$copy"
before=$(stat -c '%n %i' "$copy"/*)
staged 1 "$d"
[ "$(stat -c '%n %i' "$copy"/*)" = "$before" ] || fail "copied again"
flip "$copy/train-00000.h5" 100000
staged 2 "$d"
expect_same "$d" "$copy"

# No folder to copy to: one message, and no trace of it.
echo >"$folder/file"
for n in 1 2; do
  launch "$n" shard bench "$d" --stage "$folder/file/local"
  expect_rc 2
  expect_one_error
  expect_err '--stage'
done

# Damage found in the middle ends as it does elsewhere, on any number of ranks.
cp -r "$d" "$folder/damaged"
flip "$folder/damaged/train-00000.h5" 100000
for n in 1 2; do
  launch "$n" shard bench "$folder/damaged" --cache none --seconds 0.1
  expect_rc 1
  expect_one_error
  expect_err 'CRC32C'
  grep -q MPI_ABORT "$folder/err" && fail "aborted"
done

# A signal ends a stage, not only the next one.
env --default-signal=INT "$REDUCE_ALL" shard bench "$d" --seconds 7000 >"$folder/out" 2>"$folder/err" &
job=$!
sleep 2
kill -INT "$job"
rc=0
wait "$job" || rc=$?
expect_rc 130
