#!/usr/bin/env bash
# Checkpoints of lockstep train, and going on from them: the result is that of a run that was never interrupted, by whatever
# it was, and on however many ranks; what is damaged or of another run is told.
. "$(dirname "$0")/lib.bash"
cd "$folder" || exit 1
# shellcheck disable=SC2046  # process ids of our own making
trap 'kill -KILL $(pids_with "$folder/k-busy") 2>/dev/null; rm -rf "$folder"' EXIT
train=("$REDUCE_ALL" train digits --synthetic-samples 512 --batch 32 --deterministic --threads 1 --digest)
digest() { grep '^digest ' "$folder/out"; }
# same_as_whole: what ran last has the digests of the run that nobody interrupted.
same_as_whole() {
  expect_rc 0
  [ "$(digest)" = "$whole" ] || fail "expected $whole"
}

run "${train[@]}" --epochs 3 --run-dir whole
expect_rc 0
whole=$(digest)
[ -n "$whole" ] || fail "no digest"
[ ! -e whole/checkpoints ] || fail "checkpoints that nobody asked for"

# Within an epoch, by processes; all combinations are those of unit.ranks_train.
for pair in 1:2 2:1 4:4; do
  n=${pair%:*} m=${pair#*:}
  run "${train[@]}" --max-steps 21 --save-every '320 samples' --keep 2 --run-dir "part$n" --nproc "$n"
  expect_rc 0
  [ "$(echo $(ls "part$n/checkpoints"))" = 'best step-000000020 step-000000021' ] || fail "$(ls "part$n/checkpoints")"
  run "${train[@]}" --epochs 3 --resume "part$n" --run-dir "part$n-$m" --nproc "$m"
  same_as_whole
  expect_err "^resumed epoch 2, after step 21, from part$n/checkpoints/step-000000021"
done
grep -q '"kind":"resume","epoch":2,"step":21,' part4-4/log.jsonl || fail "log: $(head -3 part4-4/log.jsonl)"
grep -q '"checkpoint": "part4/checkpoints/step-000000021"' part4-4/status.json || fail "$(cat part4-4/status.json)"

# By the clock, between epochs and within; it changes nothing of what is learned.
run "${train[@]}" --epochs 3 --save-every '0.01 s' --run-dir clock
same_as_whole
[ "$(grep -c '"kind":"save"' clock/log.jsonl)" -ge 2 ] || fail "saves: $(grep save clock/log.jsonl)"

# The batch system's signals ask to be run again.
# expect_requeue DIR: the run there asks to be run again.
expect_requeue() {
  expect_rc 85
  grep -q '"state": "stopped"' "$1/status.json" || fail "status: $(cat "$1/status.json")"
  [ -s "$1/weights.h5" ] || fail "no weights"
}
for signal in term usr2 hup; do
  for n in 1 2; do
    run "${train[@]}" --epochs 300 --run-dir "k$signal$n" --nproc "$n" --inject "$signal:$((n - 1)):training:20"
    expect_requeue "k$signal$n"
  done
done
# To the process that guards a rank, where it is in a step for a while.
for n in 1 2; do
  run_dir=$folder/kguard$n
  nproc=()
  [ "$n" -eq 1 ] || nproc=(--nproc 2)
  "${train[@]}" --epochs 300 --run-dir "$run_dir" "${nproc[@]}" --inject "late:$((n - 1)):training:20:1s" >out 2>err &
  job=$!
  await has_line 'injected: late' err
  victim=$job
  [ "$n" -eq 1 ] || victim=$(parent_of "$(process_of 1)")
  kill -TERM "$victim"
  wait "$job"
  rc=$?
  expect_requeue "$run_dir"
done
# Shorter than it has become, a run is over.
at='"\(epoch\|step\|samples_seen\)":'
grep "$at" kterm1/status.json >before
run "${train[@]}" --epochs 300 --max-steps 1 --resume auto --run-dir kterm1
expect_rc 0
expect_out '^finished'
expect_err "^warning: nothing is trained: checkpoint 'kterm1/.*' is after step [0-9]+, and 1 are asked for$"
! grep -q '^epoch' "$folder/err" || fail "an epoch of nothing: $(cat "$folder/err")"
grep "$at" kterm1/status.json | diff before - || fail "status.json: $(cat kterm1/status.json)"
run "${train[@]}" --epochs 2 --save-every 1 --run-dir two
run "${train[@]}" --epochs 1 --save-every 1 --resume auto --run-dir two
expect_rc 0
expect_out '^finished after 2 epochs, 32 steps'
grep -q '"epoch": 2,' two/status.json || fail "status.json: $(cat two/status.json)"

# kill -9, again and again, until it is through.
for fault in kill:1:training:3 kill:0:write:20 kill:0:sync:2 kill:1:save:4 kill:0:evaluation,kill:1:evaluation kill:1:finish ''; do
  run "${train[@]}" --epochs 3 --save-every '64 samples' --resume auto --run-dir k9 --nproc 2 ${fault:+--inject "$fault"}
  [ -z "$fault" ] || expect_rc_of_job 3
done
same_as_whole
[ "$(ls -A k9/checkpoints | grep -vcE '^(best|step-[0-9]*)$')" -eq 0 ] || fail "left behind: $(ls -A k9/checkpoints)"

# Another recipe, another place, nothing there, or somebody at work on it.
run "${train[@]}" --epochs 3 --lr 0.5 --resume part1 --run-dir other
expect_rc 2
expect_one_error
expect_err "checkpoint 'part1/checkpoints/step-000000021' is of another recipe: lr was 1, and is 0.5"
expect_err 'fix: .*--resume-anyway'
[ ! -e other ] || fail "a folder is left"
run "${train[@]}" --epochs 3 --lr 0.5 --resume part1 --resume-anyway --run-dir other
expect_rc 0
[ "$(digest)" != "$whole" ] || fail "the rate had no effect"
for words in '--resume auto' '--resume part1 --dry-run' '--resume part1 --init-from part1/weights.h5' \
  '--resume auto --run-dir none --evaluate-only'; do
  # shellcheck disable=SC2086  # words are words
  run "${train[@]}" $words
  expect_rc 2
  expect_one_error
  expect_err '\(--resume'
done
run "${train[@]}" --resume nothing --run-dir other2
expect_rc 2
expect_err "there is no whole checkpoint in 'nothing'"
run "${train[@]}" --epochs 3 --run-dir part1
expect_rc 2
expect_err "'part1' holds another run"
expect_err '--resume auto'
run "${train[@]}" --epochs 3 --resume auto --run-dir fresh
same_as_whole
run "${train[@]}" --epochs 3 --resume auto --run-dir fresh  # once more: it is there already
same_as_whole
expect_err '^resumed epoch 3, after step 48'
run "${train[@]}" --epochs 3 --resume auto --run-dir whole
expect_rc 2
expect_err "'whole' holds a run that has ended without a checkpoint"
"${train[@]}" --epochs 3 --resume auto --run-dir "$folder/k-busy" --inject late:0:training:3:1h >out 2>err &
job=$!
await has_line 'injected: late' err
run "${train[@]}" --epochs 3 --resume auto --run-dir k-busy
expect_rc 2
expect_err "a run is under way in 'k-busy'"
kill -KILL "$job"
# A drill goes on in the folder of a drill only.
run "${train[@]}" --epochs 3 --resume auto --run-dir part4 --inject stop:0:save
expect_rc 2
expect_err "'part4' holds a run that is no drill"
[ ! -e part4/run.json ] || ! grep -q '"faults"' part4/run.json || fail "it is one now"
grep -q '"kill:1:training:3"' k9/run.json || fail "run.json: $(cat k9/run.json)"

# Back to an older one: not over newer ones, but in a folder of its own, where what it goes on with is kept.
run "${train[@]}" --epochs 3 --resume part4/checkpoints/step-000000020 --run-dir part4
expect_rc 2
expect_err "'part4' has newer checkpoints than the one to go on with: 'part4/checkpoints/step-000000021'"
mkdir never  # a name like any other
run "${train[@]}" --epochs 3 --run-dir never
same_as_whole
run "${train[@]}" --epochs 3 --run-dir never
expect_rc 2
expect_err "'never' holds another run"
run "${train[@]}" --epochs 3 --batch 64 --resume part4 --resume-anyway --run-dir other3
expect_rc 2
expect_err "an epoch of checkpoint 'part4/.*' has 16 steps, and would now have 8"
run "${train[@]}" --epochs 4 --schedule cosine --resume part4 --resume-anyway --run-dir cosine --save-every 1
expect_rc 0
run "${train[@]}" --epochs 5 --schedule cosine --resume cosine --run-dir cosine5
expect_rc 2
expect_err 'is of another recipe: epochs was 4, and is 5'

# What is damaged is named, before anything is trained, and the one before is taken.
newest=part2/checkpoints/step-000000021
printf 'X' | dd of="$newest/rank-00001.h5" bs=1 seek=3000 conv=notrunc status=none
run "${train[@]}" --epochs 3 --resume "$newest" --run-dir damaged
expect_rc 1
expect_one_error
expect_err "checkpoint '$newest' is damaged: rank-00001.h5 is not what was written"
run "${train[@]}" --epochs 3 --resume part2 --run-dir damaged --nproc 2
same_as_whole
expect_err "^warning: checkpoint '$newest' is damaged: .*; passed over"
expect_err '^resumed epoch 2, after step 20'
# Whatever it leads to, the one that was written last stays.
run "${train[@]}" --max-steps 21 --resume auto --keep 1 --run-dir part2
expect_rc 0
run "$REDUCE_ALL" ckpt verify part2
expect_rc 0
