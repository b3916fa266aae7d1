#!/usr/bin/env bash
# lockstep ckpt: what it says of checkpoints that are whole, damaged, incomplete or different.
. "$(dirname "$0")/lib.bash"
cd "$folder" || exit 1
train() {
  run "$REDUCE_ALL" train digits --synthetic-samples 128 --epochs 2 --save-every 1 --optimizer adam --lr 0.001 --deterministic --threads 1 "$@"
  expect_rc 0
}
ckpt() { run "$REDUCE_ALL" ckpt "$@"; }
train --run-dir a
train --run-dir b --nproc 2
train --run-dir c --seed 2

ckpt ls a
expect_rc 0
expect_out '^step-000000004 +3 +4 +256 .* 1 +complete$'
[ "$(tail -n +2 out | cut -d' ' -f1 | grep -c step)" -eq 2 ] || fail "not two of them, newest first"
for n in 1 2; do
  ckpt verify b --nproc "$n"
  expect_rc 0
  [ "$(grep -c 'is whole: 2 files, .* every byte as it was written$' out)" -eq 2 ] || fail "not of both"
done

ckpt diff a b
expect_rc 0
expect_out 'tensors are equal to the bit$'
ckpt diff a/checkpoints/step-000000002 b
expect_rc 1
expect_out '^step: 2 and 4$'
ckpt diff a c
expect_rc 1
expect_out '^exp_avg/.* \[0\]: .* and .*, [0-9]+ ULP apart; '
expect_out ' tensors differ$'

newest=b/checkpoints/step-000000004
printf 'X' | dd of="$newest/rank-00000.h5" bs=1 seek=2500 conv=notrunc status=none
rm a/checkpoints/step-000000004/DONE
ckpt verify b
expect_rc 1
expect_out "^checkpoint '$newest' is damaged: rank-00000.h5 is not what was written$"
expect_out '^b/checkpoints/step-000000002 is whole'
ckpt ls a
expect_rc 0
expect_out "^step-000000004 .*is incomplete: it has no DONE$"
ckpt diff a b  # the newest whole ones
expect_rc 0
expect_err "^warning: checkpoint '$newest' is damaged"
mkdir b/checkpoints/.step-000000006.tmp-of-somebody
ckpt prune b --keep 1
expect_rc 0
[ "$(ls b/checkpoints)" = step-000000002 ] || fail "$(ls b/checkpoints)"
ckpt prune b/checkpoints/step-000000002
expect_rc 2

for words in 'ls nothing' 'verify nothing' 'diff a nothing' 'prune nothing' 'diff a' ls lss 'prune a --keep 0'; do
  # shellcheck disable=SC2086  # words are words
  ckpt $words
  expect_rc 2
  expect_one_error
  expect_err 'expected: '
done
run_full "$REDUCE_ALL" ckpt ls b
expect_full
