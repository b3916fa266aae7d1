#!/usr/bin/env bash
# SIGINT and SIGTERM while packing (--inject): an orderly end, exit code 128+n, and nothing left. tests/program has
# failing writes.
. "$(dirname "$0")/shard_lib.bash"
synth=(shard synth images --out "$folder/set" --samples 400 --chunk-size 256K --shard-size 1M)

# expect_stopped CODE: expects that exit code, and no set.
expect_stopped() {
  expect_rc_of_job "$1"
  expect_err 'nothing was written'
  expect_nothing_left "$folder/set"
}
run env --default-signal=INT "$REDUCE_ALL" "${synth[@]}" --inject int:0:write:2
expect_stopped 130
launch 3 "${synth[@]}" --inject term:1:write:1
[ "$rc" -ne 0 ] || fail "exit code 0 after SIGTERM"
expect_stopped "$rc"
# A signal to all ranks, as batch systems send it, and to a rank that waits for others.
run "$REDUCE_ALL" "${synth[@]}" --nproc 3 --inject term:0:write,term:1:write,term:2:write
expect_stopped 143
