#!/usr/bin/env bash
# The next run to the same place removes what a killed run has left there. tests/program has what --force removes.
. "$(dirname "$0")/shard_lib.bash"
trap 'kill -KILL ${job:-} 2>/dev/null; rm -rf "$folder"' EXIT

# A run is killed in the middle, then repeated to the same place. What another run writes meanwhile stays.
is_written() { [ -n "$(find "$folder" -path "*$1*" -name 'train-*' 2>/dev/null)" ]; }
kill_while_writing() {
  "$REDUCE_ALL" shard synth images --out "$1" --samples 10000000 --chunk-size 1M >/dev/null 2>&1 &
  job=$!
  await is_written "$(basename "$1").tmp-"
  kill -KILL "$job"
  wait "$job" 2>/dev/null
}
kill_while_writing "$folder/new"
left=$(find "$folder" -maxdepth 1 -name 'new.*')
[ -d "$left" ] || fail "a killed run is to leave something here, or this tests nothing"
made synth toy --out "$folder/newer" --samples 32
[ -d "$left" ] || fail "what was left of another place is gone"
made synth toy --out "$folder/new" --samples 32
expect_err "removed '$left', left over from a killed run"
[ -z "$(find "$folder" -maxdepth 1 -name 'new.*')" ] || fail "something is left beside the folder"

"$REDUCE_ALL" shard synth images --out "$folder/busy" --samples 10000000 --chunk-size 1M >/dev/null 2>&1 &
job=$!
await is_written busy.tmp-
made synth toy --out "$folder/busy" --samples 32
grep -q removed "$folder/err" && fail "what a run is writing was taken for left"
is_written busy.tmp- || fail "what a run is writing is gone"
