#!/usr/bin/env bash
# What a limit of the address space is too small for is refused before anything starts, and leaves nothing behind. What else model,
# recipe or flag cannot take of a set: tests/program.
. "$(dirname "$0")/shard_lib.bash"
cd "$folder" || exit 1

made synth digits --out many --samples 20000
for stage in '' '--stage local'; do # which is not begun either
  # shellcheck disable=SC2086  # words
  run bash -c 'ulimit -v 3000000 && exec "$@"' bash "$REDUCE_ALL" train digits --data many --batch 20000 --max-steps 1 \
    --run-dir none $stage
  expect_rc 2
  expect_one_error
  expect_err 'address space \(ulimit -v\) leaves [0-2]\.[0-9]+ GB'
done
[ ! -e local ] || fail "what does not fit was copied"
# A little more than the program needs to start, with the libraries that it is linked to.
kib=140000
until bash -c "ulimit -v $kib"' && exec "$@"' bash "$REDUCE_ALL" --version >/dev/null 2>&1; do
  kib=$((kib + 20000))
  [ "$kib" -lt 2000000 ] || fail "it never starts"
done
run bash -c "ulimit -v $((kib + 60000))"' && exec "$@"' bash "$REDUCE_ALL" train digits --synthetic --max-steps 1 --run-dir none
expect_rc 2
expect_one_error
expect_err 'an address space of [0-9]+ MB is too small for .* \(the limit of this process \(ulimit -v\)\)'
[ ! -e none ] || fail "a folder of the run was left"

echo "all as it should be"
