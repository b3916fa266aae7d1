#!/usr/bin/env bash
# A run whose time is nearly over stops by itself, with a checkpoint, by the real clock. unit.ranks_train has the other
# tests of --time-limit, by a clock that it sets.
. "$(dirname "$0")/lib.bash"
cd "$folder" || exit 1
unset SLURM_JOB_END_TIME SLURM_JOB_ID PBS_JOBID
# On a machine that is too busy to begin training in that time, the run refuses the limit.
for limit in 5 20 80; do
  run "$REDUCE_ALL" train toy 1000000 --save-every 0 --time-limit "$limit" --run-dir r --nproc 2
  [ "$rc" -eq 2 ] || break
  expect_err "$limit.* s is too short for a step and a checkpoint"
done
expect_rc 85
expect_err '^limit   [0-9.]* s are left; then the run saves a checkpoint and stops'
expect_out '^stopped .*: its time limit is near'
grep -q '"state": "stopped"' r/status.json || fail "status: $(cat r/status.json)"
run "$REDUCE_ALL" ckpt verify r
expect_rc 0
