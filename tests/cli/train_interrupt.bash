#!/usr/bin/env bash
# Ctrl-C ends a training after its step, however long that takes, with weights and exit code 130. Also signals to
# --nproc.
. "$(dirname "$0")/lib.bash"
run_dir=$folder/r
# shellcheck disable=SC2046  # process ids of our own making
trap 'kill -KILL $(ranks_with "$run_dir") 2>/dev/null; rm -rf "$folder"' EXIT

# expect_stopped DIR: expects that SIGINT has ended the run there in order.
expect_stopped() {
  wait "$job"
  rc=$?
  expect_rc 130
  for member in '"state": "stopped"' '"message": "signal 2 (SIGINT)"'; do
    grep -q "$member" "$1/status.json" || fail "status lacks $member: $(cat "$1/status.json")"
  done
  await none_with "$1"
}

# start N FLAGS...: starts a training on N ranks in the background as $job. Background jobs of a script ignore SIGINT
# unless that is reset, as here: SIGINT_IS is `default` or `ignore`.
start() {
  local n=$1
  shift
  local nproc=()
  [ "$n" -eq 1 ] || nproc=(--nproc "$n")
  rm -rf "$run_dir" "$folder/err"  # so that the wait is not for files of the run before
  env --default-signal=HUP "--${SIGINT_IS:-default}-signal=INT" "$REDUCE_ALL" train toy 300 --run-dir "$run_dir" "${nproc[@]}" "$@" >"$folder/out" 2>"$folder/err" &
  job=$!
}

for n in 1 2; do
  start "$n" --inject "int:$((n - 1)):training:5"
  expect_stopped "$run_dir"
  grep -q '"step": 6,' "$run_dir/status.json" || fail "not one step later: $(cat "$run_dir/status.json")"
  [ -s "$run_dir/weights.h5" ] || fail "no weights"
done

# A message comes before the step has ended, which it never does here. A second Ctrl-C, at least a second later, ends
# the run within the step, and the status says so.
for n in 2 1; do
  start "$n" --inject "late:$((n - 1)):training:5:1h"
  await has_line 'injected: late' "$folder/err"
  kill -INT "$job"
  await has_line '^stopping after this step' "$folder/err"
  sleep 1.1
  kill -INT "$job"
  wait "$job"
  rc=$?
  expect_rc 130
  ! grep -q '"state": "running"' "$run_dir/status.json" || fail "status: $(cat "$run_dir/status.json")"
  grep -qE '"message": "(ended at once by )?signal 2 \(' "$run_dir/status.json" || fail "status: $(cat "$run_dir/status.json")"
  await none_with "$run_dir"
done

# A Ctrl-C during preparation is answered before the first step: nothing is learned, nothing saved.
for n in 1 2; do
  start "$n" --inject "int:$((n - 1)):setup:2"
  expect_stopped "$run_dir"
  grep -q '"step": 0' "$run_dir/status.json" || fail "went on: $(cat "$run_dir/status.json")"
  [ ! -e "$run_dir/weights.h5" ] || fail "weights were saved"
done

# A signal to --nproc before its ranks are ready is not lost. If they already catch it, there is a checkpoint, too. If
# it comes later than after 2 s, the run ends in the same way.
for place in init work; do
  start 2 --inject "late:0:$place:2s"
  await has_line 'injected: late' "$folder/err"
  kill -TERM "$job"
  wait "$job"
  rc=$?
  [ "$rc" -eq 85 ] || expect_rc 143
  await none_with "$run_dir"
done

# The status says which signal came, to the program or to a rank. A SIGINT that was ignored from the start, as by
# `command &`, does not count, at any number of ranks.
while read -r n how signals told <&3; do
  SIGINT_IS=$how start "$n" --inject late:0:training:5:2s
  await has_line 'injected: late' "$folder/err"
  for signal in ${signals//,/ }; do kill "-$signal" "$job"; done
  wait "$job"
  rc=$?
  expect_rc 85
  grep -q "\"message\": \"signal $told\"" "$run_dir/status.json" || fail "status: $(cat "$run_dir/status.json")"
  await none_with "$run_dir"
done 3<<'TABLE'
1 default HUP 1 (SIGHUP)
2 default USR1 10 (SIGUSR1)
2 default USR2 12 (SIGUSR2)
1 ignore INT,TERM 15 (SIGTERM)
2 ignore INT,TERM 15 (SIGTERM)
TABLE

# The parent passes on that it ignores the end of its children.
run timeout -k 5 120 env --ignore-signal=CHLD "$REDUCE_ALL" train toy 1 --run-dir "$run_dir-childless"
expect_rc 0

# A run without standard descriptors also ends in order. Its exit code says that it could print nothing.
timeout -k 5 120 "$REDUCE_ALL" train toy 1 --nproc 2 --run-dir "$run_dir-closed" <&- >&- 2>&-
rc=$?
expect_rc 3
grep -q '"state": "finished"' "$run_dir-closed/status.json" || fail "status: $(cat "$run_dir-closed/status.json")"
await none_with "$run_dir"
