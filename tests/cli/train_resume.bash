#!/usr/bin/env bash
# Checkpoints of lockstep train, and going on from them: the result is that of a run that was never interrupted, by whatever
# it was, and on however many ranks; what is damaged or of another run is told.
. "$(dirname "$0")/lib.bash"
cd "$folder" || exit 1
trap 'kill -KILL $(pids_with "$folder/k") 2>/dev/null; rm -rf "$folder"' EXIT
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

# Within an epoch, by any rank, on any number of ranks; the batch system's signals ask to be run again.
for n in 1 2 4; do
  run "${train[@]}" --max-steps 21 --save-every '320 samples' --keep 2 --run-dir "part$n" --nproc "$n"
  expect_rc 0
  [ "$(echo $(ls "part$n/checkpoints"))" = 'best step-000000020 step-000000021' ] || fail "$(ls "part$n/checkpoints")"
  for m in 1 2 4; do
    run "${train[@]}" --epochs 3 --resume "part$n" --run-dir "part$n-$m" --nproc "$m"
    same_as_whole
    expect_err "^resumed epoch 2, after step 21, from part$n/checkpoints/step-000000021"
  done
done
grep -q '"kind":"resume","epoch":2,"step":21,' part4-4/log.jsonl || fail "log: $(head -3 part4-4/log.jsonl)"
grep -q '"checkpoint": "part4/checkpoints/step-000000021"' part4-4/status.json || fail "$(cat part4-4/status.json)"

# By the clock, between epochs and within; it changes nothing of what is learned.
run "${train[@]}" --epochs 3 --save-every '0.01 s' --run-dir clock
same_as_whole
[ "$(grep -c '"kind":"save"' clock/log.jsonl)" -ge 2 ] || fail "saves: $(grep save clock/log.jsonl)"

# On any number of ranks, and with any precision, what is loaded is what was saved: every tensor to the bit.
plain=("$REDUCE_ALL" train digits --synthetic-samples 512 --batch 32 --threads 1 --optimizer adam --lr 0.001 --max-steps 7 --save-every 1)
from='' # checkpoints of 1, 2, 3 and 4 ranks, and one in bf16
for words in '--nproc 1' '--nproc 2' '--nproc 3' '--nproc 4' '--nproc 2 --precision bf16'; do
  saved="saved${words//[^a-z0-9]/}"
  from="$from $saved"
  # shellcheck disable=SC2086  # words are words
  run "${plain[@]}" $words --run-dir "$saved"
  expect_rc 0
done
for saved in $from; do
  for words in '--nproc 1' '--nproc 2' '--nproc 3' '--nproc 4' '--nproc 3 --precision bf16'; do
    rm -rf loaded
    # shellcheck disable=SC2086  # words are words
    run "${plain[@]}" $words --resume "$saved" --run-dir loaded
    expect_rc 0
    run "$REDUCE_ALL" ckpt diff "$saved" loaded
    expect_rc 0
    expect_out 'tensors are equal to the bit$'
  done
done

for signal in TERM USR2 HUP; do
  for n in 1 2; do
    nproc=()
    [ "$n" -eq 1 ] || nproc=(--nproc 2)
    "${train[@]}" --epochs 300 --run-dir "$folder/k$signal$n" "${nproc[@]}" >out 2>err &
    job=$!
    await has_line '"kind":"train"' "k$signal$n/log.jsonl"
    victim=$job
    [ "$n" -eq 1 ] || victim=$(ranks_with "$folder/k$signal$n" | tail -1)
    kill "-$signal" "$victim"
    wait "$job"
    rc=$?
    expect_rc 85
    grep -q '"state": "stopped"' "k$signal$n/status.json" || fail "status: $(cat "k$signal$n/status.json")"
    [ -s "k$signal$n/weights.h5" ] || fail "no weights"
  done
done
# Shorter than it has become, a run is over.
at='"\(epoch\|step\|samples_seen\)":'
grep "$at" kTERM1/status.json >before
run "${train[@]}" --epochs 300 --max-steps 1 --resume auto --run-dir kTERM1
expect_rc 0
expect_out '^finished'
expect_err "^warning: nothing is trained: checkpoint 'kTERM1/.*' is after step [0-9]+, and 1 are asked for$"
! grep -q '^epoch' "$folder/err" || fail "an epoch of nothing: $(cat "$folder/err")"
grep "$at" kTERM1/status.json | diff before - || fail "status.json: $(cat kTERM1/status.json)"
run "${train[@]}" --epochs 2 --save-every 1 --run-dir two
run "${train[@]}" --epochs 1 --save-every 1 --resume auto --run-dir two
expect_rc 0
expect_out '^finished after 2 epochs, 32 steps'
grep -q '"epoch": 2,' two/status.json || fail "status.json: $(cat two/status.json)"

# kill -9, again and again, until it is through.
for ((i = 0; i < 200; ++i)); do
  "${train[@]}" --epochs 3 --save-every '64 samples' --resume auto --run-dir "$folder/k9" --nproc 2 >out 2>err &
  job=$!
  sleep "0.$((RANDOM % 10))$((RANDOM % 10))"
  # shellcheck disable=SC2046  # process ids
  kill -KILL $(ranks_with "$folder/k9" | shuf -n 1) 2>/dev/null
  wait "$job"
  rc=$?
  [ "$rc" -ne 0 ] || break
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
env --default-signal=INT "${train[@]}" --epochs 3000 --resume auto --run-dir "$folder/k-busy" >out 2>err &
job=$!
await has_line '"kind":"train"' k-busy/log.jsonl
run "${train[@]}" --epochs 3 --resume auto --run-dir k-busy
expect_rc 2
expect_err "a run is under way in 'k-busy'"
kill -INT "$job"
wait "$job"

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
