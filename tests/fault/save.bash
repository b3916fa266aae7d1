#!/usr/bin/env bash
# save.bash: a checkpoint is saved in the background to a disk that is slow, or too slow; that fails for good; that is slow when
# SIGTERM comes (--inject).
. "$(dirname "$0")/../cli/lib.bash"
cd "$folder" || exit 1
digits=("$REDUCE_ALL" train digits --synthetic-samples 512 --batch 32 --val-split '' --threads 1 --deterministic --digest)
on_both() { echo "${1/RANK/0},${1/RANK/1}"; }
expect_whole() {
  run "$REDUCE_ALL" ckpt verify r
  expect_rc 0
  [ "$(grep -c 'is whole' out)" -eq "$1" ] || fail "not $1"
}

# Slow: the result is the same, and each checkpoint is whole; the last one is waited for.
for n in 1 2; do
  rm -rf r
  run "${digits[@]}" --epochs 2 --run-dir "whole$n" --nproc "$n"
  expect_rc 0
  whole=$(grep '^digest ' out)
  late=late:0:sync:each:100ms
  [ "$n" -eq 1 ] || late=$(on_both late:RANK:sync:each:100ms)
  run "${digits[@]}" --epochs 2 --save-every '512 samples' --run-dir r --nproc "$n" --inject "$late"
  expect_rc 0
  [ "$(grep '^digest ' out)" = "$whole" ] || fail "another result than $whole"
  expect_whole 2
done

# Training goes on meanwhile, to the step that ends it; if the save were waited for, that were never made.
rm -rf r
run "${digits[@]}" --epochs 2 --save-every '128 samples' --run-dir r --nproc 2 --inject late:0:sync:1h,kill:1:training:6
expect_rc 3
expect_err 'injected: late:0:sync'
expect_err 'rank 1 on .* has died'

# Waits one after another, longer than --timeout: beyond that a disk is given 1 s for 14.4 MB.
rm -rf r
run "${digits[@]}" --epochs 1 --save-every 1 --run-dir r --nproc 2 --timeout 1s --inject "$(on_both late:RANK:sync:each:700ms)"
expect_rc 0
rm -rf r
run "${digits[@]}" --epochs 1 --save-every 1 --run-dir r --nproc 2 --timeout 1s --inject late:0:sync:1h
expect_rc 4
expect_err 'stalled: no progress for 2 s in phase save'

# Lost: what cannot be written costs no training, and at the end the exit code tells.
rm -rf r
run "${digits[@]}" --epochs 2 --save-every '512 samples' --run-dir r --nproc 2 --inject "$(on_both io:RANK:sync:1:1000)"
expect_rc 3
expect_one_error
expect_err '^warning: no checkpoint after step 16: a checkpoint cannot be written: .*Input/output error'
expect_out '^failed after 2 epochs, 32 steps'
[ -z "$(ls -A r/checkpoints)" ] || fail "left: $(ls -A r/checkpoints)"
[ -s r/weights.h5 ] || fail "no weights"

# Asked to stop: the one under way is completed, and there is a last one.
rm -rf r
run "${digits[@]}" --epochs 300 --save-every '512 samples' --run-dir r --nproc 2 --inject term:1:sync,late:1:sync:500ms
expect_rc 85
[ "$(grep -c '"kind":"save"' r/log.jsonl)" -eq 2 ] || fail "not the one under way and the last: $(grep save r/log.jsonl)"
[ -z "$(ls -A r/checkpoints | grep -v '^step-[0-9]*$')" ] || fail "left: $(ls -A r/checkpoints)"
expect_whole 2
