#!/usr/bin/env bash
# stall.bash RANK PHASE: that rank stops there; the others name it within the timeout, exit 4, no process is left, and the
# result file is valid.
# stall.bash none: the same run without the fault succeeds, so it is the fault that bites.
. "$(dirname "$0")/../cli/lib.bash"
seed=$((RANDOM * 32768 + RANDOM + 1))
# shellcheck disable=SC2046  # process ids of our own making
trap 'kill -KILL $(ranks_with "$seed") 2>/dev/null; rm -rf "$folder"' EXIT
arguments=(-e 4K -f 8 -n 20 --timeout 3s --seed "$seed")

if [ "$1" = none ]; then
  launch 3 "${arguments[@]}"
  expect_rc 0
  exit 0
fi

echo 'of an earlier run' >"$folder/r.json"
start=$SECONDS
launch 3 "${arguments[@]}" --inject "stop:$1:$2" --json "$folder/r.json"
elapsed=$((SECONDS - start))
expect_rc_of_job 4
expect_one_error
expect_err "rank $1 on "
expect_err "$2"
[ "$elapsed" -le 30 ] || fail "took $elapsed s with a timeout of 3 s"
# From the first measurement on, the file is this run's: valid, and marked as not complete.
if [ "$2" != init ]; then
  grep -q '"complete": *false' "$folder/r.json" && tail -c 3 "$folder/r.json" | grep -q '}' || fail "the file is not of this run"
fi
# Rank 0 ends its table, even when it was the one that had stopped.
if [ "$2" = timing ] || [ "$2" = verification ]; then
  expect_out '^# not complete: a rank stalled'
  expect_out '^# Avg bus bandwidth    : '
fi
await none_with "$seed"
