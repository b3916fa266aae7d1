#!/usr/bin/env bash
# phases.bash MOMENT COMMAND: rank 1 of 3 is stopped, and in another run killed, at that moment (see fault_at.cpp). Stopped:
# exit code 4 and one message that names it; killed: 3. All are gone in either case, long before a limit, and no rank is left.
# phases.bash none COMMAND: the same without a signal succeeds, so it is the signal that bites. COMMAND: reduce_all, train, or
# a verb of `lockstep shard`.
. "$(dirname "$0")/../cli/lib.bash"
seed=$((RANDOM * 32768 + RANDOM + 1))
# shellcheck disable=SC2046  # process ids of our own making
trap 'kill -KILL $(ranks_with "$seed") 2>/dev/null; rm -rf "$folder"' EXIT
cd "$folder" || exit 1

# The seed is the mark of this run's processes; where it is no flag it is a name of a folder.
case $2 in
  reduce_all) command=(-e 4K -f 8 -n 5 --seed "$seed") ;;
  train) command=(train toy 2 --run-dir r --seed "$seed") ;;
  synth) command=(shard synth toy --samples 200 --out made --seed "$seed") ;;
  import)
    printf 'a,y\n%s' "$(seq -f '0.%g,0.5' 200)" >"$seed"
    command=(shard import csv "$seed" --no-classes --out made)
    ;;
  *)
    "$REDUCE_ALL" shard synth toy --samples 200 --out "$seed" >/dev/null || fail "no set"
    command=(shard "$2" "$seed")
    ;;
esac
case $2 in
  pack) command+=(--out packed) ;;
  split) command+=(--out parts --val 0.5) ;;
  merge) command+=("$seed" --out merged) ;;
  bench) command+=(--seconds 0.1) ;;
esac

# strike SIGNAL: the command on 3 ranks, one of which gets that signal.
strike() {
  rm -rf r made packed parts merged
  SECONDS=0
  run env FAULT_SIGNAL="$1" FAULT_RANK=1 FAULT_AT="$moment" LD_PRELOAD="$FAULT_AT_LIBRARY" "$REDUCE_ALL" "${command[@]}" \
    --timeout 3s --nproc 3
  [ "$SECONDS" -le 30 ] || fail "took $SECONDS s"
}

moment=$1
if [ "$moment" = none ]; then
  strike KILL
  expect_rc 0
  exit 0
fi

strike STOP
expect_rc_of_job 4
expect_one_error
expect_err "rank 1 on .*\(pid [0-9]+\): stopped by a signal"
await none_with "$seed"
strike KILL
expect_rc_of_job 3
# MPICH's launcher ends the others so late that watchdogs tell it, too.
if "$MPIEXEC" --version | grep -q 'Open MPI\|OpenRTE'; then expect_one_error; fi
expect_err "rank 1 on .*\(pid [0-9]+\) has died: signal 9"
await none_with "$seed"
