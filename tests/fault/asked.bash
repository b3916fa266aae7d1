#!/usr/bin/env bash
# asked.bash some|all: one SIGTERM ends a job with a stopped rank, with a checkpoint and exit code 85. A launcher that
# is killed is reported. With `all`: a launcher that lacks descriptors to start a rank is not started, and a stopped
# launcher is named. No rank is left. The time limit is that of the test.
. "$(dirname "$0")/../cli/lib.bash"
mark_job

if [ "$(basename "$REDUCE_ALL")" = reduce_all ]; then
  # unit.runtime_tests' Supervise tests what a signal does to such a launcher.
  run bash -c 'ulimit -n 32 && exec "$0" -e 1K -n 2 --seed "$1" --nproc 4 --timeout 1s' "$REDUCE_ALL" "$seed"
  if [ "$rc" -eq 0 ] || grep -q 'has ended before a rank has started' "$folder/err"; then
    echo "this launcher does not hang without descriptors"
    exit 77
  fi
  expect_rc 3
  expect_err 'a process may have 32 open files: too few for the launcher of Open MPI and 4 ranks'
  none_with "$seed" || fail "left: $(ranks_with "$seed")"
  exit 0
fi

# start FLAGS...: starts a training under --nproc as $job, which stays in a step until a signal comes.
start() {
  : >"$folder/err" # that of the job before has such a line, too
  "$REDUCE_ALL" train toy 2 --run-dir "$run_dir" --seed "$seed" --nproc 2 "$@" >"$folder/out" 2>"$folder/err" &
  job=$!
  await has_line 'injected: ' "$folder/err"
}

# A stopped rank continues, so that the job ends in order.
run_dir=$folder/$seed
start --inject stop:1:training:3
kill -TERM "$job"
wait "$job"
rc=$?
expect_rc 85
none_with "$seed" || fail "left: $(ranks_with "$seed")"
grep -q '"state": "stopped"' "$run_dir/status.json" || fail "status: $(cat "$run_dir/status.json")"

# end_launcher_by SIGNAL: ends the launcher of a job that waits in a step.
end_launcher_by() {
  run_dir=$folder/$seed-$1
  start --inject late:0:training:3:1h
  shared=$(grep -ho '/dev/shm/[vs][^ ]*segment[^ ]*' /proc/"$(process_of 1)"/maps | sort -u)
  kill -"$1" "$(parent_of "$(parent_of "$(process_of 1)")")"
  wait "$job"
  rc=$?
  none_with "$seed" || fail "left: $(ranks_with "$seed")"
}

# The status of a run says so if its launcher was killed.
end_launcher_by KILL
expect_rc 3
expect_err 'the MPI launcher was ended by signal 9'
for file in $shared; do [ ! -e "$file" ] || fail "left: $file"; done
grep -q '"state": "failed"' "$run_dir/status.json" || fail "status: $(cat "$run_dir/status.json")"
[ "$1" = all ] || exit 0

# A launcher that others end is no wrong result.
end_launcher_by TERM
[ "$rc" -ne 0 ] && [ "$rc" -ne 1 ] || fail "exit code $rc"

# A launcher or guard that is stopped is not awaited: it is named, and the job ends.
for whom in launcher guard; do
  run_dir=$folder/$seed-$whom-stopped
  start --timeout 2s --inject late:0:training:3:1h,late:1:training:3:1h
  stopped=$(parent_of "$(process_of 1)")
  if [ "$whom" = launcher ]; then stopped=$(parent_of "$stopped"); fi
  kill -STOP "$stopped"
  wait "$job"
  rc=$?
  expect_rc 4
  expect_one_error
  expect_err 'error: stalled: '
  none_with "$seed" || fail "left: $(ranks_with "$seed")"
done
