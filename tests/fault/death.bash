#!/usr/bin/env bash
# death.bash SIGNAL RANK WHEN HOW: in `lockstep train` on 3 ranks, SIGNAL comes to that rank at start-up, in training or in
# evaluation; HOW: nproc or launcher. Killed: exit 3; stopped: exit 4 after the timeout. Either way rank and host are
# named, also in status.json, all leave within 10 s, and no process is left.
# death.bash none: the same without the signal goes on until it is done, so it is the signal that bites.
. "$(dirname "$0")/../cli/lib.bash"
run_dir=$folder/r
launcher=
# Ours alone: below the launcher that this test started, and of this program.
trap 'kill_ours; rm -rf "$folder"' EXIT

descendants() {
  local child
  for child in $(cat "/proc/$1/task/"*/children 2>/dev/null); do
    echo "$child"
    descendants "$child"
  done
}

# The process that computes as rank $1; its guard has another name.
process_of() {
  local pid
  for pid in $(descendants "$launcher"); do
    [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = lockstep ] || continue
    tr '\0' '\n' 2>/dev/null <"/proc/$pid/environ" | grep -qxE "(OMPI_COMM_WORLD_RANK|PMI_RANK)=$1" && echo "$pid"
  done
}

kill_ours() {
  # shellcheck disable=SC2046  # process ids of our own making
  [ -z "$(ranks_with "$run_dir")" ] || kill -KILL $(ranks_with "$run_dir")
}

await() {
  for _ in $(seq 600); do
    "$@" && return
    sleep 0.05
  done
  fail "waited 30 s for: $*"
}
has_rank() { [ -n "$(process_of "$1")" ]; }
has_line() { grep -qs "$1" "$run_dir/log.jsonl"; }

# shellcheck disable=SC2086  # the preflags are words
start() {
  local how=$1
  shift
  command_line="$*"
  if [ "$how" = nproc ]; then
    "$REDUCE_ALL" "$@" --nproc 3 >"$folder/out" 2>"$folder/err" &
  else
    "$MPIEXEC" "$MPIEXEC_NUMPROC_FLAG" 3 ${MPIEXEC_PREFLAGS:-} "$REDUCE_ALL" "$@" >"$folder/out" 2>"$folder/err" &
  fi
  launcher=$!
}

if [ "$1" = none ]; then
  start nproc train toy 20 --timeout 3s --run-dir "$run_dir"
  wait "$launcher" || fail "without a signal"
  exit 0
fi

signal=$1 rank=$2 moment=$3
arguments=(train toy 1000000 --timeout 3s --run-dir "$run_dir")
[ "$moment" = evaluation ] && arguments=(train digits --synthetic-samples 30000000 --evaluate-only --timeout 3s --run-dir "$run_dir")
start "$4" "${arguments[@]}"
await has_rank "$rank"
[ "$moment" = training ] && await has_line '"kind":"train"'
[ "$moment" = evaluation ] && await has_line '"kind":"start"' && sleep 0.5
victim=$(process_of "$rank")
kill "-$signal" "$victim"
begin=$SECONDS
wait "$launcher"
rc=$?
[ $((SECONDS - begin)) -le 10 ] || fail "took $((SECONDS - begin)) s"
expect_one_error
if [ "$signal" = STOP ]; then
  expect_rc 4
  expect_err "rank $rank on $(hostname -s) \(pid $victim\): stopped"
else
  expect_rc 3
  expect_err "rank $rank on $(hostname -s) \(pid $victim\) has died: signal"
fi
if [ "$moment" != startup ]; then
  grep -q '"state": "failed"' "$run_dir/status.json" || fail "status: $(cat "$run_dir/status.json")"
  grep -qE "\"message\": \".*rank $rank on $(hostname -s) \(pid $victim\)" "$run_dir/status.json" ||
    fail "status: $(cat "$run_dir/status.json")"
fi
for _ in $(seq 50); do
  [ -z "$(ranks_with "$run_dir")" ] && exit 0
  sleep 0.1
done
fail "processes are left: $(ranks_with "$run_dir")"
