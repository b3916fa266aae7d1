#!/usr/bin/env bash
# SIGINT and SIGTERM while packing (--inject): an orderly end, exit code 128+n, and nothing left. So it is where a write fails.
. "$(dirname "$0")/shard_lib.bash"
synth=(shard synth images --out "$folder/set" --samples 400 --chunk-size 256K --shard-size 1M)

run "$REDUCE_ALL" "${synth[@]}" --nproc 3 --inject late:0:write:2:1ms
expect_rc 0
made verify "$folder/set"
rm -r "$folder/set"

# expect_stopped CODE: without a set.
expect_stopped() {
  expect_rc_of_job "$1"
  expect_err 'nothing was written'
  expect_nothing_left "$folder/set"
}
run "$REDUCE_ALL" "${synth[@]}" --inject int:0:write:2
expect_stopped 130
launch 3 "${synth[@]}" --inject term:1:write:1
[ "$rc" -ne 0 ] || fail "exit code 0 after SIGTERM"
expect_stopped "$rc"
# All ranks, as batch systems do it; and a rank that waits for others.
run "$REDUCE_ALL" "${synth[@]}" --nproc 3 --inject term:0:write,term:1:write,term:2:write
expect_stopped 143

for n in 1 3; do
  for fault in io:0:write:3 io:0:sync; do
    run "$REDUCE_ALL" "${synth[@]}" --nproc "$n" --inject "$fault"
    expect_rc 3
    expect_one_error
    expect_err "cannot .* '.*set.*': Input/output error"
    expect_nothing_left "$folder/set"
  done
done

# What is no fault of this command, or would spoil a set that is there.
made synth toy --out "$folder/old" --samples 20
while read -r told flags <&3; do
  # shellcheck disable=SC2086  # words are words
  run "$REDUCE_ALL" shard synth toy --samples 20 $flags
  expect_rc 2
  expect_one_error
  expect_err "${told//_/ }"
done 3<<TABLE
no_fault --out $folder/new --inject flip:w:0:1
unknown_phase --out $folder/new --inject stop:0:training
no_rank_1 --out $folder/new --inject stop:1:work
a_new_set --out $folder/old --force --inject stop:0:work
exists|there --out $folder/old --inject stop:0:sync
TABLE
made verify "$folder/old"
[ ! -e "$folder/new" ] || fail "a set is left"
