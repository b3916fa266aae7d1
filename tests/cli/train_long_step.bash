#!/usr/bin/env bash
# A step that takes several times --timeout is no stall while every layer of it takes less.
. "$(dirname "$0")/lib.bash"
for n in 1 2; do
  run "$REDUCE_ALL" train digits --batch 16384 --accumulate 128 --synthetic-samples 16384 --max-steps 1 --val-split '' --threads 1 \
    --timeout 2s --nproc "$n" --run-dir "$folder/r$n"
  expect_rc 0
  seconds=$(sed -n 's/.*"elapsed_s": \([0-9]*\).*/\1/p' "$folder/r$n/status.json")
  [ "$seconds" -ge 4 ] || { echo "a step takes less than twice the timeout: $seconds s"; exit 77; }
done
