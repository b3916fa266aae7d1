#!/usr/bin/env bash
# save.bash: a checkpoint is saved in the background to a disk that is slow, or too slow. Meanwhile a rank is killed, or
# SIGTERM comes (--inject). tests/program has the cases without a signal or a time limit.
. "$(dirname "$0")/../cli/lib.bash"
cd "$folder" || exit 1

# trained FLAGS...: trains 16 steps per epoch.
trained() {
  rm -rf r
  run "$REDUCE_ALL" train digits --synthetic-samples 512 --batch 32 --val-split '' --threads 1 --run-dir r --nproc 2 "$@"
}

# Training continues meanwhile, to the step that ends it. If the save were awaited, that step would never come.
trained --epochs 2 --save-every '128 samples' --inject late:0:sync:1h,kill:1:training:6
expect_rc 3
expect_err 'injected: late:0:sync'
expect_err 'rank 1 on .* has died'

# Writes wait one after another for longer than --timeout. A disk gets 1 s more for 14.4 MB.
trained --epochs 1 --save-every 1 --timeout 1s --inject late:0:sync:each:700ms,late:1:sync:each:700ms
expect_rc 0
trained --epochs 1 --save-every 1 --timeout 1s --inject late:0:sync:1h
expect_rc 4
expect_err 'stalled: no progress for 2 s in phase save'

# A run that is asked to stop completes the current save, and makes a last one.
trained --epochs 300 --save-every '512 samples' --inject term:1:sync,late:1:sync:500ms
expect_rc 85
[ "$(grep -c '"kind":"save"' r/log.jsonl)" -eq 2 ] || fail "not the one under way and the last: $(grep save r/log.jsonl)"
[ -z "$(ls -A r/checkpoints | grep -v '^step-[0-9]*$')" ] || fail "left: $(ls -A r/checkpoints)"
run "$REDUCE_ALL" ckpt verify r
expect_rc 0
[ "$(grep -c 'is whole' out)" -eq 2 ] || fail "not 2"
