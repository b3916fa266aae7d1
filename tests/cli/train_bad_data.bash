#!/usr/bin/env bash
# Of a set that is read on 3 ranks one number is infinite, or one byte of a shard changes: exit 1, no weights, and one message
# that names the rank whose sample it is and the layer, or the file.
. "$(dirname "$0")/shard_lib.bash"
cd "$folder" || exit 1

# make_set NINTH: twelve samples; the ninth is of the second step, and there of rank 1.
make_set() {
  rm -rf d r
  {
    echo a,b,y
    for i in 1 2 3 4 5 6 7 8; do echo "0.$i,0.5,0.25"; done
    echo "$1,0.5,0.25"
    for i in 1 2 3; do echo "0.$i,0.5,0.25"; done
  } >t.csv
  made import csv t.csv --no-classes --out d
}
train() {
  run "$REDUCE_ALL" train toy --data d --order sequential --batch 6 --epochs 1 --lr 1e-9 --val-split '' --nproc 3 --run-dir r
}
expect_failure() {
  train
  expect_rc 1
  expect_one_error
  [ ! -e r/weights.h5 ] || fail "weights were kept"
}

make_set 1234.5
train
expect_rc 0
rm -r r
place=$(LC_ALL=C grep -obUaP '\x00\x50\x9a\x44' d/train-00000.h5) || fail "1234.5 is not in the shard"
flip d/train-00000.h5 "${place%%:*}"
expect_failure
expect_err 'train-00000\.h5'

make_set inf
expect_failure
expect_err 'the loss of step 2 is not finite'
expect_err "rank 1 on $(hostname -s), first in "
grep -q '"state": *"failed"' r/status.json || fail "status.json does not say that the run failed"


# A process that has no descriptors left says nothing about the data.
make_set 0.5
n_told=0
for limit in $(seq 6 40); do
  run bash -c 'ulimit -n "$1" && shift && exec "$@"' bash "$limit" "$REDUCE_ALL" train toy --data d --max-steps 1 --val-split '' \
    --run-dir "r$limit"
  [ "$rc" -ne 0 ] || break
  expect_rc 3
  n_told=$((n_told + $(grep -c 'error: cannot open .*open files' "$folder/err")))
done
[ "$rc" -eq 0 ] || fail "40 descriptors are not enough"
[ "$n_told" -gt 0 ] || fail "no limit was met within the program"

echo "all as it should be"
