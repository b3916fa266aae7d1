#!/usr/bin/env bash
# Fire drill: one flipped bit on one rank is found, named and fails the run.
. "$(dirname "$0")/lib.bash"

launch 3 -b 4K -e 4K -n 10 --json "$folder/r.json" --inject wrong:1:7
expect_rc 1
expect_out '^# WRONG: .* rank 1 on [^,]+, index 7: expected .*, found .*; 1 wrong'
expect_out '^# Out of bounds values : 1 FAILED$'
grep -q '"wrong":1' "$folder/r.json" || fail "the JSON file does not count it"

for words in '--collective reduce_scatter' '--collective all_gather --in-place' '-d bfloat16 -o max' \
  '-d int8 -o avg -w 0'; do
  # shellcheck disable=SC2086
  launch 2 -b 1K -e 1K -n 10 $words --inject wrong:0
  expect_rc 1
  expect_out 'rank 0 on [^,]+, index 0:'
done
