#!/usr/bin/env bash
# Too little room in /dev/shm for a large network, as with Docker's default of 64 MB: one message within seconds, exit
# code 3, nothing left there. No rank waits for one that could not get its part. With enough room, the same works.
# $REDUCE_ALL is reduce_all or the trainer. Skipped if no small file system can be mounted.
. "$(dirname "$0")/lib.bash"
unshare -m mount -t tmpfs -o size=1m none /dev/shm 2>/dev/null || { echo "cannot mount a small /dev/shm"; exit 77; }

# with_room SIZE COMMAND...: runs it with its own /dev/shm. $folder/left lists what is left there.
with_room() {
  local size=$1
  shift
  run unshare -m bash -c 'mount -t tmpfs -o "size=$0" none /dev/shm && "$@"; rc=$?; ls -A /dev/shm >"$LEFT"; exit $rc' "$size" "$@"
}
export LEFT=$folder/left

# expect_told WHAT: expects a report of what lacks room. `--timeout` is far longer than that takes.
expect_told() {
  expect_rc 3
  expect_one_error
  expect_err "$1.* /dev/shm has .* left"
  expect_err 'fix: enlarge it'
  [ "$SECONDS" -lt 60 ] || fail "took $SECONDS s"
  [ -z "$(cat "$LEFT")" ] || fail "left in /dev/shm: $(cat "$LEFT")"
}

if [ "$(basename "$REDUCE_ALL")" = reduce_all ]; then
  SECONDS=0
  with_room 12m "$REDUCE_ALL" -b 16M -e 16M -n 2 --algorithm shm --timeout 120s --nproc 4
  expect_told 'ranks on .* cannot share .* of memory: .* No space left on device;'
  with_room 512m "$REDUCE_ALL" -b 16M -e 16M -n 2 --algorithm shm --timeout 120s --nproc 4
  expect_rc 0
  exit 0
fi

training=(train digits --synthetic-samples 128 --max-steps 1 --timeout 120s)
SECONDS=0
with_room 13m "$REDUCE_ALL" "${training[@]}" --run-dir "$folder/small" --nproc 2
expect_told '2 ranks on .* share 14.4 MB of parameters and gradients,'
[ ! -e "$folder/small" ] || fail "a run folder is left"
with_room 14m "$REDUCE_ALL" "${training[@]}" --run-dir "$folder/small" --nproc 2  # not enough for what comes later
expect_told 'ranks on .* cannot share .* of memory: .* No space left on device;'
[ ! -e "$folder/small" ] || fail "a run folder is left"
with_room 1g "$REDUCE_ALL" "${training[@]}" --run-dir "$folder/large" --nproc 2
expect_rc 0
# A single rank shares nothing.
with_room 1m "$REDUCE_ALL" "${training[@]}" --run-dir "$folder/alone"
expect_rc 0
