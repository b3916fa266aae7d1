#!/usr/bin/env bash
# requeue.bash BUILD: the template for training on two nodes, through what may happen to it: asked to stop by SIGUSR1 it saves, goes back
# into the queue and goes on to the bits of a run that nobody has interrupted; a node that goes down; the time limit; scancel,
# after which it stays away.
. "$(dirname "$0")/site.bash"
start_site "$1" 320
cd "$folder/work" || exit 1

# script NAME EPOCHS: the template, deterministic, with a digest of the result.
script() {
  job_script 2 1 1 generic/train.sbatch -e "s|--resume auto|--resume auto --deterministic --digest --threads 1 --epochs $2|" -e "s|job-name=.*|job-name=$1|" \
    -e '/^launch lockstep doctor/,/end_job$/d' "${@:3}"
}
digest_of() { job_log "$1" | grep '^digest ' | tail -1; }
goes_on() { job_has_logged "$1" '^== .* lockstep train' && [ -s "$(echo runs/*-"$1")/log.jsonl" ] && grep -q '"kind":"train"' runs/*-"$1"/log.jsonl; }

job=$(submit_script "$(script whole 30)")
expect_job "$job" COMPLETED
whole=$(digest_of "$job")
[ -n "$whole" ] || fail_job "$job" "no digest"

job=$(submit_script "$(script asked 30)")
await goes_on "$job"
on ctl scancel --signal=USR1 "$job"
await job_has_logged "$job" 'put into the queue again'
expect_job "$job" COMPLETED
[ "$(restarts_of "$job")" = 1 ] || fail_job "$job" "restarts: $(restarts_of "$job")"
grep -q '"kind":"resume"' runs/asked-"$job"/log.jsonl || fail_job "$job" "did not go on from where it was"
[ "$(digest_of "$job")" = "$whole" ] || fail_job "$job" "another result than $whole"
echo "asked to stop: $(on ctl scontrol show job "$job" | grep -o 'Restarts=[0-9]*'), the result is that of a run without interruption"

# Asked to stop while doctor runs, which cannot save: that is lost, but not the job.
job=$(submit_script "$(script early 2 -e 's/^data=.*/&\nlaunch_first() { [[ ${SLURM_RESTART_COUNT:-0} -gt 0 ]] || launch sleep 97.531; }/' \
  -e 's/^launch lockstep train/launch_first || end_job\n&/')")
both_sleep() { [ "$(for pid in $(pids_with 97.531); do cat "/proc/$pid/comm" 2>/dev/null; done | grep -cx sleep)" -ge 2 ]; }
await both_sleep
sleep 2 # srun learns a moment later that they do, and only then hands signals on
on ctl scancel --batch --signal=USR1 "$job"
await job_has_logged "$job" 'put into the queue again'
job_has_logged "$job" 'exit code 85' || fail_job "$job" "not 85"
expect_job "$job" COMPLETED
echo "asked to stop before it trained: put into the queue again"

# A node goes down, with all that runs there, and comes back; Slurm itself puts the job into the queue.
job=$(submit_script "$(script down 30 -e "s/--save-every '30 min'/--save-every '320 samples'/")")
await goes_on "$job"
await job_has_logged "$job" '^checkpoint runs'
kill -KILL "${init_of[node-b]}"
await is_in_state "$job" PENDING
start_host node-b 10.77.0.3
start_node node-b
on ctl scontrol update NodeName=node-b State=RESUME 2>/dev/null
expect_job "$job" COMPLETED
grep -q '"kind":"resume"' runs/down-"$job"/log.jsonl || fail_job "$job" "did not go on from where it was"
[ "$(digest_of "$job")" = "$whole" ] || fail_job "$job" "another result than $whole"
echo "a node went down: the job went on on both, with the same result"

# At its time limit: stopped before it, and back in the queue. (Slurm looks every half a minute, and so sends the signal 20 s to 50 s
# before the end. What does not yet train by then goes back as well.)
job=$(submit_script "$(script limit 100000)" --time=1 --signal=B:USR1@20)
await goes_on "$job"
await job_has_logged "$job" 'put into the queue again'
job_has_logged "$job" 'exit code 85\|asked to stop, so not started' || fail_job "$job" "not 85"
echo "time limit: stopped before it, and put into the queue again"

# Taken away by its user: saved, and not put back.
await goes_on "$job"
await is_in_state "$job" RUNNING
on ctl scancel "$job"
await is_in_state "$job" CANCELLED
sleep 5
is_in_state "$job" CANCELLED || fail_job "$job" "came back from scancel"
run "$prefix/bin/lockstep" ckpt verify runs/limit-"$job"
expect_rc 0
echo "scancel: saved, and it stays away"
