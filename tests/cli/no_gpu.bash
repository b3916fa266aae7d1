#!/usr/bin/env bash
# The programs on a machine without a GPU, or built without CUDA: they start, say what is missing, and never fall back
# unless asked. With CUDA ($MADE_UP_DRIVER is a folder) a made-up driver shows them no GPU, even if there is one.
. "$(dirname "$0")/lib.bash"
cd "$folder" || exit 1

# refused WHAT FIX: expects that the program alone refuses.
refused() {
  run "$REDUCE_ALL" -e 8 -n 8 --device cuda
  expect_refusal "$1" "$2"
}

# all_refused WHAT FIX: expects the same of each program, and on two ranks; `auto` continues and says why.
all_refused() {
  local what=$1 fix=$2
  refused "$what" "$fix"
  launch 2 -e 8 -n 8 --device cuda
  expect_refusal "$what" "$fix"
  launch 2 -e 8 -n 8 --device auto --json "$folder/r.json"
  expect_rc 0
  expect_out ' shm '
  if [ -n "${MADE_UP_DRIVER:-}" ]; then expect_out "^# device: host, because $what"; fi
  grep -q '"device": null' "$folder/r.json" || fail "the file does not name the host"
  [ -n "${LOCKSTEP:-}" ] || return 0
  run "$LOCKSTEP" train toy 1 --device cuda --run-dir refused
  expect_refusal "$what" "$fix"
  [ ! -e refused ] || fail "a run that was refused has left something"
  run "$LOCKSTEP" train toy 1 --run-dir on-host
  expect_rc 0
  if [ -n "${MADE_UP_DRIVER:-}" ]; then expect_err "^device  host: $what"; fi
  run "$LOCKSTEP" doctor --device cuda
  expect_rc 1
  expect_out "^gpus  *fail .*$what"
  expect_out "fix: $fix"
}

# expect_refusal WHAT FIX
expect_refusal() {
  expect_rc 2
  expect_one_error
  expect_err "^error: rank on .* has no GPU: $1.* \\(--device cuda\\)"
  expect_err '^  expected: an NVIDIA GPU for every rank$'
  expect_err "^  fix: $2.*--device host"
}

if [ -n "${MADE_UP_DRIVER:-}" ]; then
  # A library that cannot be loaded ends the search for it.
  mkdir none
  : >none/libcuda.so.1
  export LD_LIBRARY_PATH=$folder/none${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  all_refused 'no NVIDIA driver \(libcuda.so.1\) on this machine' 'use a node with GPUs; start a container'
  export LD_LIBRARY_PATH=$MADE_UP_DRIVER:$LD_LIBRARY_PATH
  # Programs run with any driver for their major version of CUDA, and with newer ones.
  export LOCKSTEP_MADE_UP_DRIVER=$(((CUDA_MAJOR - 1) * 1000 + 80))
  if [ "$LOCKSTEP_MADE_UP_DRIVER" -ge 12000 ]; then
    refused "the NVIDIA driver supports CUDA $((CUDA_MAJOR - 1)).8, but this program needs CUDA $CUDA_MAJOR\\." \
      "build with CUDA $((CUDA_MAJOR - 1)).8, or ask the administrator to update the driver"
  fi
  LOCKSTEP_MADE_UP_DRIVER=11040 refused "the NVIDIA driver supports CUDA 11.4, but this program needs CUDA $CUDA_MAJOR\\." \
    "ask the administrator for a driver for CUDA $CUDA_MAJOR\\."
  export LOCKSTEP_MADE_UP_DRIVER=$(((CUDA_MAJOR + 1) * 1000)) LOCKSTEP_MADE_UP_DRIVER_BEGINS=100
  unset CUDA_VISIBLE_DEVICES
  refused 'the NVIDIA driver shows no GPU to this process' 'ask the batch system for GPUs'
  CUDA_VISIBLE_DEVICES='' refused "the NVIDIA driver shows no GPU to this process, with CUDA_VISIBLE_DEVICES=''" \
    'ask the batch system for GPUs .*; check CUDA_VISIBLE_DEVICES'
  LOCKSTEP_MADE_UP_DRIVER_BEGINS=802 refused 'the NVIDIA driver reports an error: .* \(cudaErrorSystemNotReady\)' 'run nvidia-smi'
else
  all_refused 'this program is built without CUDA' 'build '
fi
