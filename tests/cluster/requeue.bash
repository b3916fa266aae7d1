# What may happen to the template for training on two nodes, on top of site.bash. Each event is a part.

begin_requeues() {
  begin_part asked is_asked_to_stop
  begin_part down loses_a_node
  begin_part limit meets_its_time_limit
}

# start_job NAME RESTARTS [FLAG ...]: starts $job, which trains until it has restarted so often (endless.bash). If a
# file `waits` is beside it, the first start runs something before that cannot save.
start_job() {
  local file
  file=$(job_script 2 1 1 generic/train.sbatch -e "s|job-name=.*|job-name=$1|" -e 's/^data=.*/&\nlaunch_first() { [[ ! -e waits || ${SLURM_RESTART_COUNT:-0} -gt 0 ]] || launch sleep 600; }/' \
    -e '/^launch lockstep doctor/,/end_job$/d' -e 's/^launch lockstep train/launch_first || end_job\n&/' \
    -e "$(train_without_end "$site" "\${SLURM_RESTART_COUNT:-0} -ge $2")")
  job=$(submit_script "$file" "${@:3}") || fail "$1"
}
# trains N: returns whether it trains after N restarts.
trains() {
  awk -v n="$1" '/"kind":"resume"/ { n_resumed++; n_trained = 0 } /"kind":"train"/ { n_trained++ } END { exit !(n_resumed + 0 == n && n_trained) }' \
    runs/*-"$job"/log.jsonl 2>/dev/null
}
has_restarted() { [ "$(told "$job" Restarts)" -ge "$1" ] 2>/dev/null; }
# expect_end RESTARTS: expects the bits of an uninterrupted run of as many steps.
expect_end() {
  expect_job "$job" COMPLETED
  [ "$(told "$job" Restarts)" = "$1" ] || fail_job "$job" "restarts: $(told "$job" Restarts)"
  [ "$(grep -c '"kind":"resume"' runs/*-"$job"/log.jsonl)" -eq "$1" ] || fail_job "$job" "did not go on from where it was"
  [ "$(job_log "$job" | grep '^digest ' | tail -1)" = "$(digest_without_interruption "$(echo runs/*-"$job")" "$data")" ] ||
    fail_job "$job" "another result than without an interruption"
}

# SIGUSR1 to its ranks and then to its script: it saves and goes back into the queue.
is_asked_to_stop() {
  start_job asked 2
  await trains 0
  on ctl scancel --signal=USR1 "$job"
  await trains 1
  on ctl scancel --batch --signal=USR1 "$job"
  expect_end 2
  [ "$(job_log "$job" | grep -c '== saved; requeued')" -eq 2 ] || fail_job "$job" "its script has not requeued it twice"
  echo "asked to stop: requeued, with the result of a run without interruption"
}

# A node fails with all that runs there, and comes back. Slurm itself requeues the job.
loses_a_node() {
  local node
  start_job down 1
  await_log "$job" '^checkpoint runs'
  await trains 0
  node=$(told "$job" NodeList | tr -d '[]')
  node=node-${node##*[,-]}
  kill -KILL "$(init_of "$node")"
  on ctl scontrol update "NodeName=$node" State=DOWN Reason=killed
  await has_restarted 1
  start_hosts "$node"
  start_node "$node"
  on ctl scontrol update "NodeName=$node" State=RESUME 2>/dev/null # or it has come back by itself
  expect_end 1
  echo "a node went down: the job went on, with the result of a run without interruption"
}

# Its time limit comes while something runs that cannot save: that work is lost, but not the job. Then it trains, and
# its user cancels it: it saves, and is not requeued. (Slurm checks every half a minute, so it sends the signal 20 s to
# 50 s before the end.)
meets_its_time_limit() {
  touch waits
  start_job limit 1000 --time=1 --signal=B:USR1@20
  await_log "$job" '== saved; requeued'
  job_has_logged "$job" 'exit code 85\|asked to stop, so not started' || fail_job "$job" "not 85"
  echo "time limit: stopped before it, and requeued"
  rm waits
  on ctl scontrol update "JobId=$job" TimeLimit=60 # else the signal of the limit may come before that of its user
  await_log "$job" '^checkpoint runs'
  on ctl scancel "$job"
  await_log "$job" '== saved; not requeued'
  await is_in_state "$job" CANCELLED # nothing of it runs any more
  run "$prefix/bin/lockstep" ckpt verify runs/limit-"$job"
  expect_rc 0
  echo "scancel: saved, and it stays away"
}
