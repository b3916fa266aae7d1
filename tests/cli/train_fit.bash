#!/usr/bin/env bash
# A training that does not fit into a limit of the address space is refused before it starts, and leaves nothing behind.
# tests/program has other sets that a model, recipe or flag refuses.
. "$(dirname "$0")/shard_lib.bash"
cd "$folder" || exit 1

made synth digits --out many --samples 20000
for stage in '' '--stage local'; do # staging does not begin either
  # shellcheck disable=SC2086  # words
  run bash -c 'ulimit -v 3000000 && exec "$@"' bash "$REDUCE_ALL" train digits --data many --batch 20000 --max-steps 1 \
    --run-dir none $stage
  expect_rc 2
  expect_one_error
  expect_err 'address space \(ulimit -v\) leaves [0-2]\.[0-9]+ GB'
done
[ ! -e local ] || fail "what does not fit was copied"
# A little more than the program and its libraries need to start.
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
