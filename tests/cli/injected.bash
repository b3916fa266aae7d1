#!/usr/bin/env bash
# Fire drills: one flipped bit on one rank is found, named and fails the run; cores that move are noticed.
. "$(dirname "$0")/lib.bash"

launch 3 -b 4K -e 4K -n 10 --json "$folder/r.json" --inject wrong:1:7
expect_rc 1
expect_out '^# WRONG: .* rank 1 on [^,]+, index 7: expected .*, found .*; 1 wrong'
expect_out '^# Out of bounds values : 1 FAILED$'
grep -q '"wrong":1' "$folder/r.json" || fail "the JSON file does not count it"

# Cores that move: what they spoil is measured again; rows are marked where that did not help, and the last lines say so.
launch 2 -b 8 -e 256 -n 20 --algorithm ring --json "$folder/r.json" --inject move:40
expect_rc 0
if grep -q '^# cores: a line travels' "$folder/out"; then
  expect_out '^# cores moved: sizes were measured again 1 time$'
  expect_out 'compare within a size only: round trip of 8 B to .* at 100 ns, .* to 256 B at 400 ns$'
  grep -q '"distance_changed":true' "$folder/r.json" && fail "a row is marked though it was measured again"
  launch 2 -b 8 -e 8 -n 20 --algorithm ring,shm --json "$folder/r.json" --inject move:2
  expect_rc 0
  expect_out '^# cores moved: sizes were measured again 2 times$'
  expect_out ' shm .* 100>400'
  [ "$(grep -c '"distance_changed":true' "$folder/r.json")" -eq 2 ] || fail "the JSON file does not mark both rows"
fi

for words in '--collective reduce_scatter' '--collective all_gather --in-place' '-d bfloat16 -o max' \
  '-d int8 -o avg -w 0'; do
  # shellcheck disable=SC2086
  launch 2 -b 1K -e 1K -n 10 $words --inject wrong:0
  expect_rc 1
  expect_out 'rank 0 on [^,]+, index 0:'
done
