#!/usr/bin/env bash
# Training from end to end: the tutorial's command, ranks, digests, what a run leaves behind.
. "$(dirname "$0")/shard_lib.bash"
tests=$(cd "$(dirname "$0")" && pwd)
cd "$folder" || exit 1

trained() {
  run "$REDUCE_ALL" train "$@"
  expect_rc 0
}

loss_of() { sed -n 's/^training  *loss \([^,]*\).*/\1/p' "$folder/out"; }

# 50 epochs, weights every 10: the same loss on any number of ranks, and a smaller one than in the beginning.
trained toy 50 10 --run-dir one
expect_out 'finished after 50 epochs, 3200 steps, 102400 samples'
first=$(loss_of)
trained toy 50 10 --run-dir two --nproc 3
[ "$(loss_of)" = "$first" ] || fail "another loss on 3 ranks, not $first"
# What is about to happen is told first, then each step of the way, once.
[ "$(grep -oE '^(model|data|ranks|steps|memory|run|first step|epoch 1/50  training:)' "$folder/err" | paste -sd ' ')" = \
  'model data ranks steps memory run first step epoch 1/50  training:' ] || fail "told otherwise, or in another order"
[ "$(grep -c 'epoch .*training: loss' "$folder/err")" -eq 50 ] || fail "not a line per epoch"
expect_err '^ranks   3 ranks$'
expect_err '^steps   3200 of 32 samples in 50 epochs$'
awk -v loss="$first" 'BEGIN { exit !(loss > 0.05 && loss < 0.12) }' || fail "the loss is $first"
for file in run.json log.jsonl status.json weights.h5; do [ -s "one/$file" ] || fail "no one/$file"; done

# expect_valid RUN KIND...: its files are as their schemas say, and its log has lines of these kinds.
expect_valid() {
  local run=$1
  shift
  python3 -c 'import jsonschema' 2>/dev/null || return 0
  python3 "$tests/../unit/training/run/validate_run.py" "$run" "$tests/../../share/schemas" "$@" >"$folder/err" 2>&1 ||
    fail "$run is not as the schemas say"
}
expect_valid one train

# Weights begin where they were left: another epoch's loss is not that of the beginning.
trained toy --epochs 1 --init-from one/weights.h5 --run-dir three
awk -v loss="$(loss_of)" -v first="$first" 'BEGIN { exit !(loss <= first * 1.02) }' || fail "weights were not loaded"

# The same bits on 1, 2 and 4 ranks; with batch normalization those of its running statistics too.
expect_same_digest() {
  local n
  for n in 1 2 4; do
    trained "$@" --deterministic --digest --nproc "$n" --run-dir "$1-$n"
    sed -n 's/^digest *//p' "$folder/out" >"digest$n"
  done
  cmp -s digest1 digest2 && cmp -s digest1 digest4 && [ -s digest1 ] || fail "digests differ: $(cat digest1 digest2 digest4)"
}
expect_same_digest resnet50_synthetic --model resnet18 --image-size 32 --batch 16 --bn-group 4 --synthetic-steps 2 \
  --augment crop:32:4,flip,normalize:0.5:0.25
expect_same_digest digits --synthetic-samples 640 --max-steps 5 --accumulate 2
# The guard bites: another seed has another digest.
trained digits --deterministic --synthetic-samples 640 --max-steps 5 --accumulate 2 --digest --seed 2 --run-dir seed2
grep -qF "$(cat digest1)" "$folder/out" && fail "the digest does not depend on the weights"

# The learning rate follows the samples, whatever the number of ranks.
rate_of() {
  trained toy 3 --schedule cosine --warmup 0.1 --max-steps 10 --run-dir "rate$1" --nproc "$1"
  grep -o '"samples_seen": *320,.*"learning_rate": *[^,]*' "rate$1/log.jsonl" | sed 's/.*"learning_rate"/rate/'
}
rate=$(rate_of 1)
[ -n "$rate" ] || fail "no learning rate after 320 samples"
for n in 2 4; do [ "$(rate_of "$n")" = "$rate" ] || fail "another learning rate on $n ranks, not $rate"; done

# As the tutorial writes it, in two layers: the same network, layer by layer.
trained digits --synthetic-samples 640 --max-steps 7 --loss nll --profile --run-dir nll
expect_out '^log_softmax +[0-9.]+ +[0-9.]+ '

# Embeddings of which a step touches few rows: the same loss on any number of ranks, in parts too, as where every row is
# summed.
loss_of_ratings() {
  trained movielens --synthetic --batch 48 --max-steps 60 --val-split '' --run-dir "$@"
  loss_of
}
dense=$(loss_of_ratings dense --deterministic --lanes 4)
for n in 1 2 3; do
  found=$(loss_of_ratings "rows$n" --nproc "$n" --accumulate $((n % 2 + 1)))
  awk -v a="$found" -v b="$dense" 'BEGIN { exit !(a > 0.9999 * b && a < 1.0001 * b) }' || fail "a loss of $found, not $dense"
done

# Batch normalization by groups, of several ranks too: the same loss on any number of them, in training and by running
# statistics, also where the last batch leaves some without samples. The guard bites: other groups have another.
group_losses() {
  local group=$1 n=$2 folder_of_run
  shift 2
  folder_of_run=group$group-$n$*
  trained resnet50_synthetic --model resnet18 --cifar-stem --image-size 16 --batch 16 --bn-group "$group" \
    --synthetic-samples "$n_samples" --epochs 1 --val-split val --lr 0.001 --nproc "$n" --run-dir "$folder_of_run-$n_samples" "$@"
  sed -n 's/.*"message": *"[^"]*", *"loss": *\([^,]*\),.*"evaluation": *{[^}]*"loss": *\([^,]*\),.*/\1 \2/p' \
    "$folder_of_run-$n_samples/log.jsonl"
}
# Rounding alone grows to 2e-5 in these steps (Zen 3, AVX2; 1e-7 after the first); other groups differ by 3e-3.
near() {
  awk -v a="$1" -v b="$2" 'BEGIN {
    are_near = split(a, x) == 2 && split(b, y) == 2
    for (i = 1; i <= 2; ++i) are_near = are_near && x[i] > 0 && (x[i] - y[i]) ^ 2 < (1e-4 * y[i]) ^ 2
    exit !are_near
  }'
}
expect_group_losses() {
  local expected=$1 found
  shift
  found=$(group_losses "$@")
  near "$found" "$expected" || fail "losses of $found with $*, not $expected"
}
n_samples=35
whole=$(group_losses 16 1)
for n in 3 4; do expect_group_losses "$whole" 16 "$n"; done
n_samples=40
halves=$(group_losses 8 1)
expect_group_losses "$halves" 8 4
near "$(group_losses 16 1)" "$halves" && fail "the loss does not depend on the groups"
n_samples=24
quarters=$(group_losses 4 1 --classes 10)
for n in 2 4; do expect_group_losses "$quarters" 4 "$n" --classes 10; done
expect_group_losses "$quarters" 4 2 --classes 10 --accumulate 2

# The tutorial's own lines.
trained toy 2 1 --compat --nproc 2 --run-dir compat
expect_out '^\[GPU1\] Epoch 0 \| Batchsize: 16 \| Steps: 64$'
expect_out '^Epoch 0 \| Training checkpoint saved at '

# By layer; and whatever a run of several ranks writes down.
trained digits --synthetic-samples 640 --max-steps 15 --profile --nproc 2 --run-dir profile
expect_out '^conv2 +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+  product +[0-9]+$'
expect_out '^all layers '
expect_valid profile train evaluation profile

# A set with nothing to train on is evaluated all the same, and the result is told once.
mkdir idx
{ printf '\0\0\x08\x03\0\0\0\x0a\0\0\0\x1c\0\0\0\x1c'; head -c 7840 /dev/zero; } >idx/t10k-images-idx3-ubyte
printf '\0\0\x08\x01\0\0\0\x0a\0\1\2\3\4\5\6\7\x08\x09' >idx/t10k-labels-idx1-ubyte
made import mnist idx --out val-only
trained mnist_cnn --data val-only --evaluate-only --nproc 2 --run-dir evaluated
expect_out '^evaluation: loss .* of 10 samples'
[ "$(cat out err | grep -c 'evaluation:')" -eq 1 ] || fail "not one line"
grep -q '"state": "finished"' evaluated/status.json || fail "status: $(cat evaluated/status.json)"
trained mnist_cnn --data val-only --run-dir only-split
[ "$(grep -c "no split 'train': its only one, 'val', is trained on" err)" -eq 1 ] || fail "not told what is trained on"
[ "$(grep -c 'evaluated on the samples that it learns' err)" -eq 1 ] || fail "not told what is evaluated"
expect_out '10 samples'
run "$REDUCE_ALL" train mnist_cnn --data val-only --train-split first --run-dir untrained
expect_rc 2
expect_one_error
expect_err "no split 'first' to train on, only val"
expect_err '--train-split val; or lockstep shard split'
[ ! -e untrained ] || fail "something was left behind"

# Among five classes the right one is always one of the best five.
for n in 5 6; do
  made synth images --out "of-$n" --classes "$n" --samples 64 --height 28 --width 28 --channels 1
  trained mnist_cnn --data "of-$n" --classes "$n" --max-steps 1 --run-dir "best-of-$n"
done
grep -q '"kind":"evaluation".*"top5_percent":null' best-of-5/log.jsonl || fail "top-5 of five classes"
grep -q '"kind":"evaluation".*"top5_percent":[0-9]' best-of-6/log.jsonl || fail "no top-5 of six classes"

# From a copy of the set on the node: the same losses, both splits read there, and the original no longer needed but for its
# manifest. What was read is told.
made synth digits --out few --samples 640
trained digits --data few --epochs 1 --order blocked --window-chunks 1 --deterministic --digest --run-dir unstaged
digest=$(sed -n 's/^digest *//p' out)
trained digits --data few --epochs 1 --order blocked --window-chunks 1 --deterministic --digest --run-dir staged --stage local
[ "$(sed -n 's/^digest *//p' out)" = "$digest" ] && [ -n "$digest" ] || fail "other losses from the copy, not $digest"
expect_out '^data  .* read \([0-9.]+ ([kMG]B|bytes)/s\) in [0-9]+ chunks, 0 check sum failures.*, mixing [01]'
expect_valid staged train evaluation
mkdir original
mv few/*.h5 original
for n in 1 2; do
  trained digits --data few --epochs 1 --cache node --nproc "$n" --run-dir "copy$n" --stage local
  grep -o '"data": *{"read_bytes": *[1-9].*"cached": *true, *"mixing": *null' "copy$n/log.jsonl" |
    sed 's/.*"read_bytes": *\([0-9]*\).*/\1/' >"read$n"
done
# All of it once, by all ranks together, and again only chunks in which both have samples.
awk -v one="$(cat read1)" -v two="$(cat read2)" 'BEGIN { exit !(one > 5e5 && two >= one && two < 1.5 * one) }' ||
  fail "1 and 2 ranks have read $(cat read1 read2)"
run "$REDUCE_ALL" train digits --synthetic --stage local --run-dir none
expect_rc 2
expect_err 'stage has no effect where synthetic is true'

# A rank that fails alone says why in status.json, which has the position.
made synth digits --out damaged --samples 20000 --compress none
shard=$(echo damaged/train-*.h5)
flip "$shard" $(($(stat -c %s "$shard") * 9 / 10))
run "$REDUCE_ALL" train digits --data damaged --cache none --max-steps 313 --nproc 2 --run-dir early
expect_rc 1
for member in '"state": "failed"' '"message": "rank [01] on .*CRC32C.*damaged/train' '"step": [1-9]'; do
  grep -q "$member" early/status.json || fail "status lacks $member: $(cat early/status.json)"
done

# What a run does otherwise than its recipe may mean is told once, before it begins.
mv idx/t10k-images-idx3-ubyte idx/train-images-idx3-ubyte
mv idx/t10k-labels-idx1-ubyte idx/train-labels-idx1-ubyte
made import mnist idx --out train-only
trained mnist_cnn --data train-only --samples 21 --batch 4 --threads $(($(nproc --all) + 1)) --run-dir surprising
[ "$(grep -c "nothing is evaluated, as 'train-only' has no split 'val'" err)" -eq 1 ] || fail "not told that nothing is evaluated"
[ "$(grep -c 'samples 21 is rounded up to 24' err)" -eq 1 ] || fail "not told that samples are rounded up"
[ "$(grep -c "1 rank with $(($(nproc --all) + 1)) threads" err)" -eq 1 ] || fail "not warned of the threads"
expect_out '^finished within epoch 3 after 7 steps, 24 samples'

# A processor without instructions for bf16 computes in float32, and says so in one line. (Elsewhere oneDNN is told nothing.)
export ONEDNN_MAX_CPU_ISA=AVX2
trained digits --synthetic-samples 64 --max-steps 1 --precision bf16 --val-split '' --run-dir kept
unset ONEDNN_MAX_CPU_ISA
if [ "$(uname -m)" = x86_64 ]; then
  [ "$(grep -c 'this processor has no instructions for bf16: it is kept, and computed in float32' err)" -eq 1 ] ||
    fail "not told how bf16 is computed"
fi

# The demo ends with 1 if a network has learned less than it should.
eval "$(sed -n '/^judge_training() {/,/^}/p' "$(dirname "$0")/../../bootstrap")"
say() { echo "$*"; }
mkdir judged
for percent in 96.99 97.0 100.0; do
  printf '{"kind":"evaluation","top1_percent":%s,"time_s":1.5}\n' 99.9 "$percent" >judged/log.jsonl
  run judge_training judged
  expect_rc "$([ "$percent" = 96.99 ]; echo $((! $?)))"
done
: >judged/log.jsonl
run judge_training judged
expect_rc 1
expect_out 'FAILED: less than 97 %'

trained toy --print-config
expect_out '^batch = 32 '

echo "all as it should be"
