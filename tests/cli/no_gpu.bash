#!/usr/bin/env bash
# The program as it is on a machine without a GPU (or built without CUDA): it starts, says so, and never falls back unasked.
. "$(dirname "$0")/lib.bash"

run "$REDUCE_ALL" -e 8 -n 8 --device cuda
[ "$rc" -ne 0 ] || exit 77  # there is a GPU here
expect_rc 2
expect_one_error
expect_err 'has no GPU: '
expect_err 'fix: .*--device host'
launch 2 -e 8 -n 8 --device cuda
expect_rc 2
expect_one_error
launch 2 -e 8 -n 8 --algorithm staged
expect_rc 2
expect_one_error
expect_err 'staged works on the memory of GPUs'
expect_err 'fix: use --device cuda'
launch 2 -e 8 -n 8 --device auto --json "$folder/r.json"
expect_rc 0
expect_out ' shm '
grep -q '"device": null' "$folder/r.json" || fail "the file does not name the host"
run "$REDUCE_ALL" --list
expect_rc 0
expect_out ' staged '
expect_out ' nccl:ring/ll128 '
run "$REDUCE_ALL" --device gpu
expect_rc 2
expect_err "did you mean 'cuda'"
run "$REDUCE_ALL" --device host --share-gpu
expect_rc 2
expect_err 'the host is no GPU to be shared'
run "$REDUCE_ALL" --demo --device cuda
expect_rc 2
expect_err 'the demo is one known sum'
