#!/usr/bin/env bash
# Signals to --nproc. Ctrl-C: the step is finished however long it takes, the weights are kept, and the exit code is 130.
. "$(dirname "$0")/lib.bash"
run_dir=$folder/r
# shellcheck disable=SC2046  # process ids of our own making
trap 'kill -KILL $(ranks_with "$run_dir") 2>/dev/null; rm -rf "$folder"' EXIT

# expect_stopped DIR: the run there has ended in order, by SIGINT.
expect_stopped() {
  wait "$job"
  rc=$?
  expect_rc 130
  for member in '"state": "stopped"' '"message": "signal 2"'; do
    grep -q "$member" "$1/status.json" || fail "status lacks $member: $(cat "$1/status.json")"
  done
  await none_with "$1"
}

# A background job of a script ignores SIGINT unless it is told not to.
env --default-signal=INT "$REDUCE_ALL" train toy 1000000 --nproc 2 --run-dir "$run_dir" >"$folder/out" 2>"$folder/err" &
job=$!
await has_line '"kind":"train"' "$run_dir/log.jsonl"
slow=$(process_of 1)
[ -n "$slow" ] || fail "no rank 1"
kill -STOP "$slow"
kill -INT "$job"
sleep 2.5
grep -q '^stopping after this step' "$folder/err" || fail "not told before the step has ended"
kill -CONT "$slow"
expect_stopped "$run_dir"
[ -s "$run_dir/weights.h5" ] || fail "no weights"

# A second one ends the run in mid-step, and the status tells so: under --nproc, and alone.
for n in 2 1; do
  twice=$run_dir-twice$n
  nproc=()
  [ "$n" -eq 1 ] || nproc=(--nproc "$n")
  env --default-signal=INT "$REDUCE_ALL" train digits --batch 8192 --accumulate 64 --synthetic-samples 8192 --val-split '' \
    --epochs 100 --threads 1 --run-dir "$twice" "${nproc[@]}" >"$folder/out" 2>"$folder/err" &
  job=$!
  await has_line '"kind":"start"' "$twice/log.jsonl"
  sleep 0.5
  kill -INT "$job"
  sleep 2
  kill -INT "$job"
  wait "$job"
  rc=$?
  expect_rc 130
  ! grep -q '"state": "running"' "$twice/status.json" || fail "status: $(cat "$twice/status.json")"
  grep -qE '"message": "(ended at once by )?signal 2[ "]' "$twice/status.json" || fail "status: $(cat "$twice/status.json")"
  await none_with "$twice"
done

# One that comes while all is made ready is answered before the first step: nothing is learned, nothing saved.
for n in 1 2; do
  early=$run_dir-early$n
  nproc=()
  [ "$n" -eq 1 ] || nproc=(--nproc "$n")
  env --default-signal=INT "$REDUCE_ALL" train resnet50_synthetic --batch 4 --bn-group 4 --image-size 64 --epochs 1000 \
    --threads 1 --run-dir "$early" "${nproc[@]}" >"$folder/out" 2>"$folder/err" &
  job=$!
  await test -e "$early"
  kill -INT "$job"
  expect_stopped "$early"
  grep -q '"step": 0' "$early/status.json" || fail "went on: $(cat "$early/status.json")"
  [ ! -e "$early/weights.h5" ] || fail "weights were saved"
done

# A signal that comes before there are ranks is not lost; where they are there already, there is a checkpoint, too.
for after in 0.02 0.05 0.3; do
  timeout -k 5 120 "$REDUCE_ALL" train toy 1000000 --nproc 2 --run-dir "$run_dir-$after" >"$folder/out" 2>"$folder/err" &
  job=$!
  sleep "$after"
  await pgrep -P "$job" >/dev/null
  # shellcheck disable=SC2046  # what timeout has started
  kill -TERM $(pgrep -P "$job")
  wait "$job"
  rc=$?
  [ "$rc" -eq 85 ] || expect_rc 143
done

# A parent that ignores the end of its children passes that on.
run timeout -k 5 120 env --ignore-signal=CHLD "$REDUCE_ALL" train toy 1 --run-dir "$run_dir-childless"
expect_rc 0

# Without any standard descriptor a run ends all the same, in order; its code tells that it could print nothing.
timeout -k 5 120 "$REDUCE_ALL" train toy 1 --nproc 2 --run-dir "$run_dir-closed" <&- >&- 2>&-
rc=$?
expect_rc 3
grep -q '"state": "finished"' "$run_dir-closed/status.json" || fail "status: $(cat "$run_dir-closed/status.json")"
await none_with "$run_dir"
