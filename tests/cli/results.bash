#!/usr/bin/env bash
# What a run prints: header, rows, closing lines; every way to measure ends with right results.
. "$(dirname "$0")/lib.bash"

expect_right() {
  expect_rc 0
  expect_out '^# Out of bounds values : 0 OK$'
  expect_out '^# Avg bus bandwidth    : [0-9.]+ $'
}

for n in 1 2 3; do
  launch "$n" -e 1K -f 16 -n 10
  expect_right
  expect_out "^# ranks $n, nodes 1: "
done
expect_out 'MPI: '
expect_out '^# %limit: '
expect_out '^# cores: (a line travels between|not measured, as ranks share cores)'
expect_out '\*$'

launch 1 -e 8 -n 10
expect_out 'there is no communication'

for words in '--in-place' '--buffers dirty' '--buffers cold' '--sync none' '-w 0' \
  '--collective reduce_scatter --in-place' '--collective all_gather --in-place' '--collective all_gather' \
  '--collective reduce_scatter -d bfloat16'; do
  # shellcheck disable=SC2086  # words are words
  launch 3 -b 8 -e 2K -f 16 -n 6 $words
  expect_right
done

# What was not looked at is not called right.
launch 3 -b 8 -e 2K -f 16 -n 6 -w 0 -c 0
expect_rc 0
expect_out '^# Out of bounds values : not checked$'
# Every type and every op, but not all pairs: MPICH 4.0.2 itself takes the minimum of unsigned integers for signed.
launch 3 -d all -o sum -b 8 -e 8 -n 2 -w 1 --algorithm mpi,ring
expect_right
launch 3 -d int16,float16 -o all -b 8 -e 8 -n 2 -w 1 --algorithm mpi,shm
expect_right
launch 3 -b 4 -e 40 -i 12 --ranks-per-node 2 -g 1 -t 1 -n 6
expect_right
expect_out 'simulated nodes 2'
expect_out ' hierarchical '

launch 2 -e 1K -n 10 --algorithm ring,mpi --verdict
expect_right
[ "$(grep -c ' float32 ' "$folder/out")" -eq 16 ] || fail "expected two rows for each of 8 sizes"
expect_out '^Fastest here: '
expect_out '^The shortest call \(8 B\) takes '

# The loops of an older processor, said so.
ONEDNN_MAX_CPU_ISA=SSE41 launch 2 -d float32,bfloat16 -o avg -e 2K -f 16 -n 6 --json "$folder/sse41.json"
expect_right
expect_out '^# WARNING: ONEDNN_MAX_CPU_ISA=SSE41: .* the plain ones'
grep -q '"instruction_set": *"plain"' "$folder/sse41.json" || fail "the result does not tell the instruction set"

run "$REDUCE_ALL" --nproc 2 -e 8 -n 6
expect_right
expect_out '^# ranks 2,'
run "$REDUCE_ALL" -e 8 -n 6
expect_right
