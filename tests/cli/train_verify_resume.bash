#!/usr/bin/env bash
# lockstep train --verify-resume: the same bits are told as such, others are found and kept, and nothing else is left.
. "$(dirname "$0")/lib.bash"
cd "$folder" || exit 1
seed=$((RANDOM * 32768 + RANDOM + 1)) # the mark of its processes
# shellcheck disable=SC2046  # process ids of our own making
trap 'kill -KILL $(pids_with "$seed") 2>/dev/null; rm -rf "$folder"' EXIT
digits=("$REDUCE_ALL" train digits --synthetic-samples 256 --batch 32 --seed "$seed" --verify-resume)
verify=("${digits[@]}" --epochs 8)
is_there() { compgen -G "$1" >/dev/null; }
# expect_left NAMES: nothing else is in the folder, and no process.
expect_left() {
  [ "$(ls -A | paste -sd" ")" = "$*" ] || fail "left: $(ls -A)"
  none_with "$seed" || fail "processes: $(ranks_with "$seed")"
}

run "${verify[@]}" --nproc 2
expect_rc 0
expect_err '^info: interrupted on 2 ranks: stopped by SIGTERM after step '
expect_out '^uninterrupted +2 +- +[0-9a-f]{32}  [0-9a-f]{32}'
expect_out '^resumed +2 +[0-9]+ +[0-9a-f]{32}  [0-9a-f]{32}  yes$'
expect_out '^resumed +1 +[0-9]+ +[0-9a-f]{32}  [0-9a-f]{32}  yes$'
expect_out '^resumed is uninterrupted: .* all 24 tensors'
expect_left err out
# However short, it is interrupted in the middle.
run "$REDUCE_ALL" train toy --max-steps 2 --seed "$seed" --verify-resume --run-dir r
expect_rc 0
expect_out '^resumed +1 +1 .*  yes$'
expect_out '^resumed +2 +1 .*  yes$'
expect_left err out

# A launcher that starts what goes on with another rate.
cat >launcher <<END
#!/usr/bin/env bash
case " \$* " in *' --resume '*) set -- "\$@" --lr 0.9 --resume-anyway ;; esac
exec "$MPIEXEC" "\$@"
END
chmod +x launcher
run env LOCKSTEP_MPIEXEC="$folder/launcher" "${verify[@]}" --nproc 2
expect_rc 1
expect_out '^resumed +2 .*  no$'
expect_out '^resumed on 2 ranks: .* \[.*\]: .* and .*, [0-9]+ ULP apart; '
expect_err "^info: the runs are kept in 'verify-resume'"
expect_left err launcher out verify-resume
run "$REDUCE_ALL" ckpt diff verify-resume/uninterrupted-2 verify-resume/resumed-2
expect_rc 1
run "${verify[@]}"
expect_rc 2
expect_one_error
expect_err "'verify-resume' exists"
rm -r verify-resume launcher

# A job that fails is told in its own words, if it has some.
run "$REDUCE_ALL" train digits --no-synthetic --data nothing --seed "$seed" --verify-resume
expect_rc 2
expect_one_error
expect_err "^error: .*'nothing"
run env LOCKSTEP_MPIEXEC="$(command -v false)" "${verify[@]}"
expect_rc 3
expect_one_error
expect_err 'uninterrupted on 1 rank: failed with exit code 1'
expect_left err out

# An end that is asked for is one of its jobs, too.
for signal in INT TERM; do
  env --default-signal=INT "${digits[@]}" --epochs 3000 --nproc 2 --run-dir "$signal" >out 2>err &
  job=$!
  await is_there "$signal.tmp-*/uninterrupted-2/status.json"
  kill "-$signal" "$job"
  wait "$job"
  rc=$?
  expect_rc $((128 + $(kill -l "$signal")))
  expect_left err out
done

for words in '--resume auto' '--dry-run' '--evaluate-only' '--profile' '--compat' '--save-weights w.h5' '--time-limit 0' '--no-deterministic' \
  '--nproc 3' '--max-steps 1'; do
  # shellcheck disable=SC2086  # words are words
  run "$REDUCE_ALL" train toy --verify-resume $words
  expect_rc 2
  expect_one_error
  expect_err 'expected: '
done
launch 2 train toy --verify-resume
expect_rc 2
expect_one_error
expect_err 'with --nproc N'
expect_left err out
