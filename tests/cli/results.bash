#!/usr/bin/env bash
# The table of a run under the launcher, of one that starts itself, and with the loops of an older processor. What ways there are to
# measure: tests/program.
. "$(dirname "$0")/lib.bash"

expect_right() {
  expect_rc 0
  expect_out '^# Out of bounds values : 0 OK$'
  expect_out '^# Avg bus bandwidth    : [0-9.]+ $'
}

launch 3 -e 1K -f 16 -n 10
expect_right
expect_out "^# ranks 3, nodes 1: "
expect_out '^# cores: (a line travels between|not measured, as ranks share cores)'
launch 3 -b 4 -e 40 -i 12 --ranks-per-node 2 -g 1 -t 1 -n 6 --verdict
expect_right
expect_out 'simulated nodes 2'
expect_out ' hierarchical '
expect_out '^Fastest here: '
expect_out '^The shortest call \(4 B\) takes '
ONEDNN_MAX_CPU_ISA=SSE41 launch 2 -d float32,bfloat16 -o avg -e 2K -f 16 -n 6 --json "$folder/sse41.json"
expect_right
expect_out '^# WARNING: ONEDNN_MAX_CPU_ISA=SSE41: .* the plain ones'
grep -q '"instruction_set": *"plain"' "$folder/sse41.json" || fail "the result does not tell the instruction set"

run "$REDUCE_ALL" --nproc 2 -e 8 -n 6
expect_right
expect_out '^# ranks 2,'
run "$REDUCE_ALL" -e 8 -n 6
expect_right
