#!/usr/bin/env bash
# death.bash SIGNAL RANK WHEN HOW: in `lockstep train` on 3 ranks, SIGNAL comes to that rank at start-up, in training or in
# evaluation; HOW: nproc or launcher. Killed: exit 3; stopped: exit 4 after the timeout. Either way rank and host are
# named, also in status.json, all leave within 30 s, and no process is left.
# death.bash none: the same without the signal goes on until it is done, so it is the signal that bites.
. "$(dirname "$0")/ranks.bash"

if [ "$1" = none ]; then
  start nproc 3 train toy 20 --timeout 3s --run-dir "$run_dir"
  end
  expect_rc 0
  exit 0
fi

signal=$1 rank=$2 moment=$3
# Without checkpoints, and in epochs of many steps: what is stopped amid one, or between two of these, was in no step.
arguments=(train toy 1000 --synthetic-samples 3000000 --save-every 0 --timeout 3s --run-dir "$run_dir")
[ "$moment" = evaluation ] && arguments=(train digits --synthetic-samples 30000000 --evaluate-only --timeout 3s --run-dir "$run_dir")
start "$4" 3 "${arguments[@]}"
await has_rank "$rank"
[ "$moment" = training ] && await has_logged '"kind":"train"'
[ "$moment" = evaluation ] && await has_logged '"kind":"start"' && sleep 0.5
victim=$(process_of "$rank")
kill "-$signal" "$victim" || fail "no process to signal: '$victim'"
begin=$SECONDS
end
[ $((SECONDS - begin)) -le 30 ] || fail "took $((SECONDS - begin)) s"
expect_one_error
if [ "$signal" = STOP ]; then
  expect_rc 4
  unit=step
  [ "$moment" = evaluation ] && unit=batch
  expect_err "rank $rank on $(hostname -s) \(pid $victim\): stopped .* last seen in phase $moment, $unit [0-9]+"
else
  expect_rc 3
  expect_err "rank $rank on $(hostname -s) \(pid $victim\) has died: signal"
fi
if [ "$moment" != startup ]; then
  grep -q '"state": "failed"' "$run_dir/status.json" || fail "status: $(cat "$run_dir/status.json")"
  grep -qE "\"message\": \".*rank $rank on $(hostname -s) \(pid $victim\)" "$run_dir/status.json" ||
    fail "status: $(cat "$run_dir/status.json")"
fi
await none_with "$run_dir"
