#!/usr/bin/env bash
# The tutorial's command as a launched program: ranks, messages, the files of a run, and other programs that read them.
# tests/ranks and tests/program have what runs compute and print otherwise.
. "$(dirname "$0")/shard_lib.bash"
tests=$(cd "$(dirname "$0")" && pwd)
cd "$folder" || exit 1

trained() {
  run "$REDUCE_ALL" train "$@"
  expect_rc 0
}

loss_of() { sed -n 's/^training  *loss \([^,]*\).*/\1/p' "$folder/out"; }

# expect_valid RUN KIND...: expects files that follow their schemas, and a log with lines of these kinds.
expect_valid() {
  local run=$1
  shift
  python3 -c 'import jsonschema' 2>/dev/null || return 0
  python3 "$tests/../unit/training/run/validate_run.py" "$run" "$tests/../../share/schemas" "$@" >"$folder/err" 2>&1 ||
    fail "$run is not as the schemas say"
}

# 50 epochs, weights every 10: the loss is the same on any number of ranks, and smaller than at the beginning.
trained toy 50 10 --run-dir one
expect_out 'finished after 50 epochs, 3200 steps, 102400 samples'
first=$(loss_of)
awk -v loss="$first" 'BEGIN { exit !(loss > 0.05 && loss < 0.12) }' || fail "the loss is $first"
trained toy 50 10 --run-dir two --nproc 3
[ "$(loss_of)" = "$first" ] || fail "another loss on 3 ranks, not $first"
# A run first prints what will happen, then each step of the way, once.
[ "$(grep -oE '^(model|data|ranks|steps|memory|run|first step|epoch 1/50  training:)' "$folder/err" | paste -sd ' ')" = \
  'model data ranks steps memory run first step epoch 1/50  training:' ] || fail "told otherwise, or in another order"
[ "$(grep -c 'epoch .*training: loss' "$folder/err")" -eq 50 ] || fail "not a line per epoch"
expect_err '^ranks   3 ranks$'
expect_err '^steps   3200 of 32 samples in 50 epochs$'
for file in run.json log.jsonl status.json weights.h5; do [ -s "two/$file" ] || fail "no two/$file"; done
expect_valid two train

# Training uses a set with more threads than processors. A processor without instructions for bf16 computes in float32.
# Each of these prints one line. (On other processors, oneDNN gets no setting.)
made synth digits --out few --samples 640
n_threads=$(($(nproc --all) + 1))
ONEDNN_MAX_CPU_ISA=AVX2 trained digits --data few --stage local --max-steps 7 --profile --precision bf16 --threads $n_threads \
  --run-dir staged
[ "$(grep -c "1 rank with $n_threads threads" err)" -eq 1 ] || fail "not warned of the threads"
if [ "$(uname -m)" = x86_64 ]; then
  [ "$(grep -c 'this processor has no instructions for bf16: values are kept in bf16 and computed in float32' err)" -eq 1 ] ||
    fail "not told how bf16 is computed"
fi
expect_valid staged train evaluation profile

# The demo exits with 1 if a network has learned less than it should.
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
