#!/usr/bin/env bash
# What --force removes: a set of ours and nothing else. What a killed run has left, the next to the same place removes.
. "$(dirname "$0")/shard_lib.bash"
trap 'kill -KILL ${job:-} 2>/dev/null; rm -rf "$folder"' EXIT
d=$folder/d

# refuse_to_replace MESSAGE: exit code 2, and all of $d is as it was.
refuse_to_replace() {
  rm -rf "$folder/before" && cp -a "$d" "$folder/before"
  shard synth toy --out "$d" --samples 32 --force
  expect_rc 2
  expect_one_error
  expect_err "$1"
  expect_err 'fix: '
  expect_same "$d" "$folder/before"
  [ -z "$(find "$folder" -maxdepth 1 -name 'd.*')" ] || fail "something is left beside the folder"
}

made synth toy --out "$d" --samples 64
echo 'years of work' >"$d/thesis.txt"
refuse_to_replace "'thesis.txt' in it belongs to something else"
mkdir "$d/notes"
refuse_to_replace "'notes' and 1 more in it"
rm -r "$d/thesis.txt" "$d/notes"
printf ' ' >>"$d/manifest.json"
refuse_to_replace 'manifest does not end with its digest'
echo '{"name": "web app"}' >"$d/manifest.json"
refuse_to_replace 'this is no manifest of shards'
rm "$d/manifest.json"
refuse_to_replace 'it has no manifest.json'

rm -r "$d"
made synth toy --out "$d" --samples 64
made synth toy --out "$d" --samples 32 --force
made synth toy --out "$d/" --samples 32 --force
for inside in new new/; do
  shard synth toy --out "$d/$inside" --samples 32
  expect_rc 2
  expect_one_error
  expect_err 'would lie in a set of shards'
done
made stat "$d"
expect_out 'train +32 '
mkdir "$folder/empty"
made synth toy --out "$folder/empty" --samples 32 --force

# Killed in the middle, then once more to the same place; what another run is writing meanwhile stays.
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
expect_err "removed '$left', which a killed run has left"
[ -z "$(find "$folder" -maxdepth 1 -name 'new.*')" ] || fail "something is left beside the folder"

"$REDUCE_ALL" shard synth images --out "$folder/busy" --samples 10000000 --chunk-size 1M >/dev/null 2>&1 &
job=$!
await is_written busy.tmp-
made synth toy --out "$folder/busy" --samples 32
grep -q removed "$folder/err" && fail "what a run is writing was taken for left"
is_written busy.tmp- || fail "what a run is writing is gone"
