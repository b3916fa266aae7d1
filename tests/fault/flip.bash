#!/usr/bin/env bash
# flip.bash: in `lockstep train` on 2 ranks, one bit of a parameter flips between two steps, in the memory that they
# share (--inject). The message names the rank that writes it and the parameter; exit code 1. tests/ranks/flip_test.cpp
# has other consequences.
. "$(dirname "$0")/ranks.bash"
cd "$folder" || exit 1
run "$REDUCE_ALL" train digits --nproc 2 --inject flip:fc2.weight:1:1 --max-steps 3
expect_rc 1
expect_one_error
expect_err '^warning: a fire drill: faults are injected, flip:fc2.weight:1:1'
expect_err "parameters of 'fc2.weight' changed in memory between two steps"
expect_err 'rank 1 on node 0'
