#!/usr/bin/env bash
# preempt.bash [all]: SIGTERM comes to one of two ranks in some phases of `lockstep train` (--inject), or in all. The
# run ends with 85 within a step and a save. There is a whole checkpoint, or none if nothing was trained yet, and the
# next run resumes from it.
. "$(dirname "$0")/../cli/lib.bash"
cd "$folder" || exit 1
run "$REDUCE_ALL" shard synth digits --out d --samples 1200 --chunk-size 64K
expect_rc 0
run "$REDUCE_ALL" shard split d --out both --val 0.5 --join
expect_rc 0
train=("$REDUCE_ALL" train digits --data both --threads 1 --run-dir r --resume auto --stage local --save-every '640 samples' --nproc 2)

# Fault, and the number of steps before the end: a signal takes effect one step late, in evaluation between batches.
# Lines with a third word are only for `all`.
while read -r fault steps only <&3; do
  [ -z "$only" ] || [ "${1:-}" = "$only" ] || continue
  rm -rf r local
  run "${train[@]}" --epochs 300 --inject "$fault"
  expect_rc 85
  expect_err "injected: $fault"
  grep -q '"state": "stopped"' r/status.json || fail "$fault: status: $(cat r/status.json)"
  grep -q "\"step\": $steps," r/status.json || fail "$fault: not after $steps steps: $(cat r/status.json)"
  [ -z "$(ls -A r/checkpoints 2>/dev/null | grep -vE '^(best|step-[0-9]*)$')" ] || fail "left: $(ls -A r/checkpoints)"
  if [ "$steps" -gt 0 ]; then
    run "$REDUCE_ALL" ckpt verify r
    expect_rc 0
    expect_out "step-0*$steps is whole"
  else
    [ -z "$(ls r/checkpoints 2>/dev/null)" ] || fail "$fault: a checkpoint of nothing: $(ls r/checkpoints)"
  fi
  run "${train[@]}" --max-steps $((steps + 1))
  expect_rc 0
  grep -q "\"step\": $((steps + 1))," r/status.json || fail "$fault: did not go on: $(cat r/status.json)"
done 3<<'TABLE'
term:0:work 0 all
term:1:setup 0
term:0:setup:4 0 all
term:1:training:1 2 all
term:1:training:7 8
term:0:evaluation:1 11 all
term:1:evaluation:2 13
term:0:save 11 all
term:1:write 11
usr2:0:sync:2 11 all
TABLE
