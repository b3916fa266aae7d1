#!/usr/bin/env bash
# --device on made-up GPUs, which a recorder plays: jobs with --nproc, and their files. The exit code is 99 if something
# was enqueued in an order that a GPU need not keep. tests/mpi/train_*_test.cpp have the rest.
. "$(dirname "$0")/lib.bash"
tests=$(cd "$(dirname "$0")" && pwd)
cd "$folder" || exit 1

run "$REDUCE_ALL" train toy --device cuda --nproc 2 --run-dir refused
expect_rc 2
expect_one_error
expect_err 'ranks 0 and 1 share one GPU, GPU-0.*--device cuda'
[ ! -e refused ] || fail "a run that was refused has left something"

run "$REDUCE_ALL" train digits --synthetic-samples 64 --batch 8 --max-steps 8 --device cuda --share-gpu --nproc 2 --profile --run-dir profiled
expect_rc 0
expect_err '^device  made-up GPU, shared by all ranks'
if python3 -c 'import jsonschema' 2>/dev/null; then
  run python3 "$tests/../unit/training/run/validate_run.py" profiled "$tests/../../share/schemas" train evaluation profile
  expect_rc 0
fi

# --verify-resume starts jobs on the device of its flag, and all runs where the first one was.
verify=(digits --synthetic-samples 64 --batch 8 --max-steps 4 --verify-resume)
LOCKSTEP_MADE_UP_GPUS=0 run "$REDUCE_ALL" train "${verify[@]}" --device cuda
expect_rc 2
expect_one_error
# verified DEVICE N RESUMED ARGUMENTS...: verifies on DEVICE with N ranks, and resumes on these numbers of ranks.
verified() {
  local on=$1 n=$2 resumed=$3
  run "$REDUCE_ALL" train "${verify[@]}" --nproc "$n" "${@:4}"
  expect_rc 0
  ! grep '^info: .* s, on ' "$folder/err" | grep -v " s, on $on\$" || fail "a run elsewhere than on $on"
  [ "$(sed -n 's/^resumed  *\([0-9]\) .* yes$/\1/p' "$folder/out" | paste -s -d ' ')" = "$resumed" ] || fail "other runs resumed"
}
verified 'the host' 2 '2 1'
verified 'made-up GPU' 2 2 --device cuda --share-gpu
