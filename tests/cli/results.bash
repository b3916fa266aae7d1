#!/usr/bin/env bash
# The table of a run: under the launcher, with --nproc, with the loops of an older processor, and of one rank alone.
# tests/program has the ways to measure.
. "$(dirname "$0")/lib.bash"

expect_right() {
  expect_rc 0
  expect_out '^# Out of bounds values : 0 OK$'
  expect_out '^# Avg bus bandwidth    : [0-9.e-]+ $'
}

launch 3 -e 128 -f 16 -n 4
expect_right
expect_out "^# ranks 3, nodes 1: "
expect_out '^# cores: (a cache line takes|not measured, because ranks share cores)'
ONEDNN_MAX_CPU_ISA=SSE41 run "$REDUCE_ALL" --nproc 2 -d float32,bfloat16 -o avg -e 64 -f 16 -n 6 --visits 0 --json "$folder/sse41.json"
expect_right
expect_out '^# ranks 2,'
expect_out '^# WARNING: ONEDNN_MAX_CPU_ISA=SSE41: .* loops: plain'
grep -q '"instruction_set": *"plain"' "$folder/sse41.json" || fail "the result does not tell the instruction set"
run "$REDUCE_ALL" -e 8 -n 6
expect_right
