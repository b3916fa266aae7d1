#!/usr/bin/env bash
# SIGINT and SIGTERM while packing: an orderly end, exit code 128+n, and nothing left.
. "$(dirname "$0")/shard_lib.bash"
trap 'kill -KILL $(ranks_with "$folder/big") 2>/dev/null; rm -rf "$folder"' EXIT

# Too much to finish within the test, in the background; returns once files are being written.
start() {
  "$@" shard synth images --out "$folder/big" --samples 10000000 --chunk-size 1M >"$folder/out" 2>"$folder/err" &
  job=$!
  await is_written
}
is_written() { [ -n "$(find "$folder" -path '*big*' -name 'train-*' 2>/dev/null)" ]; }

for signal in INT TERM; do
  # A background job of a script ignores SIGINT unless it is told not to.
  start env --default-signal=INT "$REDUCE_ALL"
  kill "-$signal" "$job"
  rc=0
  wait "$job" || rc=$?
  expect_rc $((128 + $(kill -l "$signal")))
  expect_err 'nothing was written'
  expect_nothing_left "$folder/big"
done

# All of three ranks, as batch systems do it.
# shellcheck disable=SC2086  # the preflags are words
start "$MPIEXEC" "$MPIEXEC_NUMPROC_FLAG" 3 ${MPIEXEC_PREFLAGS:-} "$REDUCE_ALL"
# shellcheck disable=SC2046  # process ids
kill -TERM $(ranks_with "$folder/big")
wait "$job" && fail "exit code 0 after SIGTERM"
expect_nothing_left "$folder/big"
[ -z "$(ranks_with "$folder/big")" ] || fail "processes are left"
