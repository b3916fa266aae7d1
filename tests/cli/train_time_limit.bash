#!/usr/bin/env bash
# A run whose time is nearly over stops by itself, with a checkpoint, in training and in evaluation; started again it goes
# on to the result it would have had.
. "$(dirname "$0")/lib.bash"
cd "$folder" || exit 1
trap 'kill -KILL $(pids_with "$folder/k") 2>/dev/null; rm -rf "$folder"' EXIT
unset SLURM_JOB_END_TIME SLURM_JOB_ID PBS_JOBID
train=("$REDUCE_ALL" train digits --synthetic-samples 512 --batch 32 --deterministic --threads 1 --digest)

# expect_stopped FOLDER: it was in time (seconds), and has a whole checkpoint.
expect_stopped() {
  expect_rc 85
  expect_out '^stopped .*: its time is nearly over'
  grep -q '"state": "stopped"' "$1/status.json" || fail "status: $(cat "$1/status.json")"
  run "$REDUCE_ALL" ckpt verify "$1"
  expect_rc 0
}

# What SIGKILL would end, as batch systems do, was over before.
for n in 1 2; do
  run timeout -s KILL 15 "${train[@]}" --epochs 30000 --time-limit 10 --run-dir "own$n" --nproc "$n"
  expect_err '^limit   [0-9.]* s are left, then the run stops, with a checkpoint'
  expect_err '^epoch 2/30000  will fit: it takes about '
  expect_stopped "own$n"
done
SLURM_JOB_END_TIME=$(($(date +%s) + 8)) run timeout -s KILL 15 "${train[@]}" --epochs 30000 --run-dir job
expect_err '^limit   '
expect_stopped job
# PBS has a program that tells; this one stands for it, and prints what OpenPBS does.
mkdir bin
cat >bin/qstat <<'QSTAT'
#!/bin/sh
[ "$1 $2" = '-f 12.server' ] || exit 153
printf 'Job Id: 12.server\n    Job_Name = train\n    Resource_List.walltime = 00:00:09\n    stime = %s\n' "$(LC_ALL=C date '+%a %b %e %H:%M:%S %Y')"
QSTAT
chmod +x bin/qstat
PATH=$folder/bin:$PATH PBS_JOBID=12.server run timeout -s KILL 15 "${train[@]}" --epochs 30000 --run-dir pbs --nproc 2
expect_err '^limit   [5-9]\.?[0-9]* s are left'
expect_stopped pbs
PATH=$folder/bin:$PATH PBS_JOBID=13.server run "${train[@]}" --epochs 1 --run-dir unknown
expect_rc 0
expect_err "^warning: 'qstat -f 13.server' does not tell when this job ends"
PBS_JOBID=13.server run "${train[@]}" --epochs 1 --run-dir zero --time-limit 0
expect_rc 0
! grep -q qstat err || fail "it was asked"
printf '#!/bin/sh\n[ "$*" = "--noheader --jobs 7 --format %%L" ] && echo UNLIMITED\n' >bin/squeue
chmod +x bin/squeue
PATH=$folder/bin:$PATH SLURM_JOB_ID=7 run "${train[@]}" --epochs 1 --run-dir unlimited
expect_rc 0
! grep -qE '^limit|^warning: .squeue' err || fail "a limit where there is none"
PATH=$folder/bin:$PATH SLURM_JOB_ID=8 run "${train[@]}" --epochs 1 --run-dir lost
expect_rc 0
expect_err "^warning: 'squeue --noheader --jobs 8 --format %L' does not tell when this job ends"
# No limit, or one that is not there: all of it is trained.
run "${train[@]}" --epochs 2 --run-dir whole
expect_rc 0
! grep -q '^limit' err || fail "a limit that nobody set"
digest=$(grep '^digest ' out)
SLURM_JOB_END_TIME=$(($(date +%s) + 1)) run "${train[@]}" --epochs 2 --time-limit 0 --run-dir none
expect_rc 0
[ "$(grep '^digest ' out)" = "$digest" ] || fail "another digest"
# Too little time for anything but a save is refused where somebody names it. Of a job it is told, and no limit: run again and
# again, nothing would ever be done.
run "${train[@]}" --epochs 2 --time-limit 1 --run-dir refused --nproc 2
expect_rc 2
expect_one_error
expect_err '1.00 s are too little time for a step and a checkpoint'
[ ! -e refused ] || fail "left behind"
printf '#!/bin/sh\necho 0:02\n' >bin/squeue
PATH=$folder/bin:$PATH SLURM_JOB_ID=7 run "${train[@]}" --epochs 2 --run-dir little
expect_rc 0
expect_err '^warning: too little time is left for a checkpoint'
[ "$(grep '^digest ' out)" = "$digest" ] || fail "another digest"
# In parts it comes to the same.
run "${train[@]}" --epochs 20 --run-dir whole20
digest=$(grep '^digest ' out)
for ((i = 0; i < 100; ++i)); do
  run "${train[@]}" --epochs 20 --time-limit 5 --resume auto --run-dir parts
  [ "$rc" -eq 85 ] || break
done
expect_rc 0
[ "$i" -gt 0 ] || fail "never stopped"
[ "$(grep '^digest ' out)" = "$digest" ] || fail "another digest"
# An evaluation under way is left.
run timeout -s KILL 12 "${train[@]}" --synthetic-samples 480000 --max-steps 1 --time-limit 6 --run-dir evaluation
expect_stopped evaluation

run "${train[@]}" --time-limit soon --run-dir x
expect_rc 2
expect_one_error
run "$REDUCE_ALL" train digits --evaluate-only --synthetic-samples 512 --time-limit 5 --run-dir x
expect_rc 2
expect_err '--time-limit goes with training'
