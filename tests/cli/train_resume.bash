#!/usr/bin/env bash
# lockstep train ended by signals. Signals that ask for an end give exit code 85. After kill -9 a run resumes, finally
# on another number of ranks, with the bits of an uninterrupted run. tests/ranks and tests/program have other
# resumptions and what is refused.
. "$(dirname "$0")/lib.bash"
cd "$folder" || exit 1
train=("$REDUCE_ALL" train digits --synthetic-samples 256 --batch 32 --val-split '' --deterministic --threads 1 --digest)
digest() { grep '^digest ' "$folder/out"; }

run "${train[@]}" --epochs 3 --run-dir whole
expect_rc 0
whole=$(digest)
[ -n "$whole" ] || fail "no digest"

# expect_requeue DIR: expects that the run there asks to be run again.
expect_requeue() {
  expect_rc 85
  grep -q '"state": "stopped"' "$1/status.json" || fail "status: $(cat "$1/status.json")"
  [ -s "$1/weights.h5" ] || fail "no weights"
}
run env --default-signal=HUP "${train[@]}" --epochs 40 --run-dir hup --inject hup:0:training:20
expect_requeue hup
# To the process that guards a rank, while the rank stays in a step.
for n in 1 2; do
  run_dir=$folder/kguard$n
  nproc=()
  [ "$n" -eq 1 ] || nproc=(--nproc 2)
  rm -f err  # that of the run before has the line, too
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

# kill -9 before there is a checkpoint, while one is written, and between two. fault.soak draws other places.
for fault in kill:1:training:2 kill:0:write:20 kill:1:save:4; do
  run "${train[@]}" --epochs 3 --save-every '64 samples' --resume auto --run-dir k9 --nproc 2 --inject "$fault"
  expect_rc_of_job 3
  grep -q "\"$fault\"" k9/run.json || fail "run.json: $(cat k9/run.json)"
done
run "${train[@]}" --epochs 3 --save-every '64 samples' --resume auto --run-dir k9
expect_rc 0
expect_err '^resumed epoch '
[ "$(digest)" = "$whole" ] || fail "expected $whole"
[ "$(ls -A k9/checkpoints | grep -vcE '^step-[0-9]*$')" -eq 0 ] || fail "left behind: $(ls -A k9/checkpoints)"
