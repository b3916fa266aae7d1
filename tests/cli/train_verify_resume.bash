#!/usr/bin/env bash
# lockstep train --verify-resume with launched jobs: a signal interrupts one of them. A signal to --verify-resume ends
# it and its current job. tests/program has jobs that differ or fail.
. "$(dirname "$0")/lib.bash"
cd "$folder" || exit 1
mark_job
verify=("$REDUCE_ALL" train digits --synthetic-samples 256 --batch 32 --seed "$seed" --verify-resume --nproc 2)
is_there() { compgen -G "$1" >/dev/null; }
# expect_nothing_left: expects that only the output is left, and no process.
expect_nothing_left() {
  [ "$(ls -A | paste -sd" ")" = 'err out' ] || fail "left: $(ls -A)"
  none_with "$seed" || fail "processes: $(ranks_with "$seed")"
}

run "${verify[@]}" --epochs 6
expect_rc 0
expect_err '^info: interrupted on 2 ranks: stopped by SIGTERM after step '
expect_out '^uninterrupted +2 +- +[0-9a-f]{16}  [0-9a-f]{32}'
expect_out '^resumed +2 +[0-9]+ +[0-9a-f]{16}  [0-9a-f]{32}  yes$'
expect_out '^resumed +1 +[0-9]+ +[0-9a-f]{16}  [0-9a-f]{32}  yes$'
expect_out '^resumed and uninterrupted runs are bit-identical: .* all 24 tensors'
expect_nothing_left

env --default-signal=INT "${verify[@]}" --epochs 3000 --run-dir r >out 2>err &
job=$!
await is_there 'r.tmp-*/uninterrupted-2/status.json'
kill -INT "$job"
wait "$job"
rc=$?
expect_rc 130
expect_nothing_left
