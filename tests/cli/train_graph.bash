#!/usr/bin/env bash
# --graph: whatever is replayed of a step, nothing, passes, or all of it, the bits are the same; on GPUs that are made up, as in
# train_device.
. "$(dirname "$0")/train_device_lib.bash"
cd "$folder" || exit 1

# Of ranks that share a GPU, and of ranks with one each.
for graph in off compute step; do
  trained toy 6 --device cuda --digest --share-gpu --nproc 2 --graph $graph --run-dir "shared-$graph"
  [ "$(digest_of)" = "${shared:=$(digest_of)}" ] || fail "other bits with --graph $graph"
  LOCKSTEP_MADE_UP_GPUS=2 trained movielens --synthetic --max-steps 5 --digest --nproc 2 --graph $graph --run-dir "own-$graph"
  [ "$(digest_of)" = "${own:=$(digest_of)}" ] || fail "other bits with --graph $graph on GPUs of their own"
done

# Of batches in parts, and of groups of batch normalization over ranks: all of them, and by twos.
LOCKSTEP_MADE_UP_GPUS=4
export LOCKSTEP_MADE_UP_GPUS
# Of each rank; with `off`, or where sums of a pass go by way of the host, nothing is.
expect_replays() {
  local graph=$1
  if [ "$graph" = off ]; then expect_out '^recorder: 0 replays$'; else expect_out '^recorder: [1-9][0-9]* replays$'; fi
}
LOCKSTEP_MADE_UP_GPU_TELLS=1
export LOCKSTEP_MADE_UP_GPU_TELLS
parts=(movielens --synthetic --max-steps 4 --accumulate 4 --digest)
unset expected
for graph in off compute step; do
  trained "${parts[@]}" --nproc 2 --graph $graph --run-dir "parts-$graph"
  [ "$(digest_of)" = "${expected:=$(digest_of)}" ] || fail "other bits of parts with --graph $graph"
  expect_replays $graph
done
groups=(resnet50_synthetic --model resnet18 --image-size 32 --batch 8 --synthetic-steps 3 --max-steps 3 --lr 0.0001 --precision f32 --digest)
trained "${groups[@]}" --bn-group 8 --device host --run-dir groups-host
host=$(loss_of)
for of in '2 8' '4 4'; do
  read -r n group <<<"$of"
  unset expected
  for graph in off compute step; do
    trained "${groups[@]}" --bn-group "$group" --nproc "$n" --graph $graph --run-dir "groups-$n-$graph"
    [ "$(digest_of)" = "${expected:=$(digest_of)}" ] || fail "other bits of groups over $n ranks with --graph $graph"
    expect_replays $graph
  done
  [ "$group" = 8 ] || continue
  near "$(loss_of)" "$host" 0.001 || fail "groups over $n GPUs come to $(loss_of), on the host to $host"
done

# Of a last batch of two samples two ranks have none: they sum with the others in one order.
last=(resnet50_synthetic --model resnet18 --image-size 32 --batch 8 --bn-group 8 --synthetic-samples 10 --epochs 1 --no-drop-last
  --lr 0.0001 --precision f32)
trained "${last[@]}" --device host --run-dir last-host
host=$(loss_of)
trained "${last[@]}" --nproc 4 --timeout 60s --run-dir last-4
near "$(loss_of)" "$host" 0.001 || fail "4 GPUs with an uneven last batch come to $(loss_of), on the host to $host"
