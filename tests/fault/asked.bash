#!/usr/bin/env bash
# One SIGTERM ends --nproc in bounded time, with exit code 143, or 85 where a checkpoint is there, though a rank is stopped, or
# the launcher hangs for want of descriptors; and no rank is left. (It must wait for longer than a rank may need that is only busy: some 20 s.)
. "$(dirname "$0")/../cli/lib.bash"
seed=$((RANDOM * 32768 + RANDOM + 1))
# shellcheck disable=SC2046  # process ids of our own making
trap 'kill -KILL $(ranks_with "$seed") 2>/dev/null; rm -rf "$folder"' EXIT

# end_of PID CODE: a SIGTERM later.
end_of() {
  SECONDS=0
  kill -TERM "$1"
  wait "$1"
  rc=$?
  expect_rc "$2"
  [ "$SECONDS" -le 45 ] || fail "took $SECONDS s"
  none_with "$seed" || fail "left: $(ranks_with "$seed")"
}

if [ "$(basename "$REDUCE_ALL")" = reduce_all ]; then
  (ulimit -n 32 && exec "$REDUCE_ALL" -e 1K -n 2 --seed "$seed" --nproc 4) >"$folder/out" 2>"$folder/err" &
  job=$!
  sleep 3
  kill -0 "$job" 2>/dev/null || { echo "this launcher does not hang without descriptors"; exit 77; }
  end_of "$job" 143
  # Nor does such a launcher run for ever by itself.
  run bash -c 'ulimit -n 32 && exec "$0" -e 1K -n 2 --seed "$1" --nproc 4 --timeout 3s' "$REDUCE_ALL" "$seed"
  expect_rc 4
  expect_err 'the MPI launcher has started no rank for 18 s: it is killed'
  none_with "$seed" || fail "left: $(ranks_with "$seed")"
  exit 0
fi

# start FLAGS...: a training under --nproc as $job, which stays in a step until a signal comes.
start() {
  "$REDUCE_ALL" train toy 2 --run-dir "$run_dir" --seed "$seed" --nproc 2 "$@" >"$folder/out" 2>"$folder/err" &
  job=$!
  await has_line 'injected: ' "$folder/err"
}

# A stopped rank goes on, so that the end is one in order.
run_dir=$folder/$seed
start --inject stop:1:training:3
end_of "$job" 85
grep -q '"state": "stopped"' "$run_dir/status.json" || fail "status: $(cat "$run_dir/status.json")"

# Nor is a launcher awaited that stands still itself: its ranks end, as nobody reads what they say.
run_dir=$run_dir-stopped
"$REDUCE_ALL" train toy 1000000 --synthetic-samples 64 --save-every 0 --run-dir "$run_dir" --seed "$seed" --timeout 1s --nproc 2 >"$folder/out" 2>"$folder/err" &
job=$!
await has_line '"kind":"train"' "$run_dir/log.jsonl"
kill -STOP "$(parent_of "$(parent_of "$(process_of 1)")")"
SECONDS=0
wait "$job"
rc=$?
expect_rc 4
[ "$SECONDS" -le 45 ] || fail "took $SECONDS s"
expect_err 'the MPI launcher has not ended after its ranks'
none_with "$seed" || fail "left: $(ranks_with "$seed")"

# A launcher that others end is no wrong result; one that is killed leaves a run whose status says so.
end_launcher_by() {
  run_dir=$folder/$seed-$1
  start --inject late:0:training:3:1h
  kill -"$1" "$(parent_of "$(parent_of "$(process_of 1)")")"
  wait "$job"
  rc=$?
  none_with "$seed" || fail "left: $(ranks_with "$seed")"
}
end_launcher_by TERM
[ "$rc" -ne 0 ] && [ "$rc" -ne 1 ] || fail "exit code $rc"
end_launcher_by KILL
expect_rc 3
expect_err 'the MPI launcher was ended by signal 9'
grep -q '"state": "failed"' "$run_dir/status.json" || fail "status: $(cat "$run_dir/status.json")"
