#!/usr/bin/env bash
# Ctrl-C under --nproc: the step is finished however long it takes, the weights are kept, and the exit code is 130.
. "$(dirname "$0")/lib.bash"
run_dir=$folder/r
# shellcheck disable=SC2046  # process ids of our own making
trap 'kill -KILL $(ranks_with "$run_dir") 2>/dev/null; rm -rf "$folder"' EXIT

# The process that computes as rank $1; its guard has another name.
process_of() {
  local pid
  for pid in $(ranks_with "$run_dir"); do
    [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = lockstep ] || continue
    tr '\0' '\n' 2>/dev/null <"/proc/$pid/environ" | grep -qxE "(OMPI_COMM_WORLD_RANK|PMI_RANK)=$1" && echo "$pid"
  done
}

# A background job of a script ignores SIGINT unless it is told not to.
env --default-signal=INT "$REDUCE_ALL" train toy 1000000 --nproc 2 --run-dir "$run_dir" >"$folder/out" 2>"$folder/err" &
job=$!
for _ in $(seq 300); do
  grep -qs '"kind":"train"' "$run_dir/log.jsonl" && break
  sleep 0.1
done
slow=$(process_of 1)
[ -n "$slow" ] || fail "no rank 1"
kill -STOP "$slow"
kill -INT "$job"
sleep 2.5
kill -CONT "$slow"
wait "$job"
rc=$?
expect_rc 130
grep -q '"state": "stopped"' "$run_dir/status.json" || fail "status: $(cat "$run_dir/status.json")"
[ -s "$run_dir/weights.h5" ] || fail "no weights"
for _ in $(seq 50); do
  [ -z "$(ranks_with "$run_dir")" ] && exit 0
  sleep 0.1
done
fail "processes are left"
