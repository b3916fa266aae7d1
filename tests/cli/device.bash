#!/usr/bin/env bash
# Vectors in the memory of made-up GPUs ($REDUCE_ALL is linked with a recorder in the driver's place), on launched
# ranks: files, streams and exit codes. tests/mpi/reduce_all_device_test.cpp has the rest.
here=$(dirname "$0")
. "$here/lib.bash"

valid() {
  ! python3 -c 'import jsonschema' 2>/dev/null || python3 "$here/validate.py" "$SCHEMA" "$1" complete || fail "the file is not as its schema says"
}

launch 2 -b 8 -e 8K -f 32 -n 8 --share-gpu --device cuda --json "$folder/shared.json"
expect_rc 0
expect_out '^# device: made-up GPU \(GPU-0.*, shared by ranks,'
expect_out '^# Out of bounds values : 0 OK'
valid "$folder/shared.json"
launch 2 -e 8 -n 8 --device cuda
expect_rc 2
expect_one_error
expect_err 'ranks 0 and 1 share one GPU, GPU-0'

# One GPU for each rank. NCCL's own rows run if there is an NCCL; a host library stands in for it.
export LOCKSTEP_MADE_UP_GPUS=2
register=(--register local)
if "$REDUCE_ALL" --device cuda -e 8 -n 8 -R 2 2>&1 | grep -q 'NCCL [0-9.]* or newer'; then register=(); fi
if "$REDUCE_ALL" --device cuda -e 8 -n 8 | grep -q 'NCCL'; then
  launch 2 -b 8 -e 8K -f 32 -n 8 --graph "${register[@]}" --visits 2 --json "$folder/own.json"
  expect_rc 0
  expect_out '^# device: 2 GPUs, such as made-up GPU.* \(24 channels\)'
  expect_out '^# Out of bounds values : 0 OK'
  valid "$folder/own.json"
  LOCKSTEP_HOST_NCCL_FAILS=5 launch 2 -e 8 -n 8 --algorithm nccl
  expect_rc 3
  expect_err 'NCCL [0-9.]+, all_reduce: system error: a fault that was asked for; NCCL_DEBUG'
fi
exit 0
