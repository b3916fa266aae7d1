#!/usr/bin/env bash
# Bad input and texts of a launched program: alone, and once under the launcher. tests/program has what is refused.
. "$(dirname "$0")/lib.bash"

refused() {
  expect_rc 2
  expect_one_error
  expect_err "$1"
  grep -q 'float32' "$folder/out" && fail "something was measured"
  return 0
}
run "$REDUCE_ALL" --algorithm rnig
refused "did you mean 'ring'"
ONEDNN_MAX_CPU_ISA=AVX22 run "$REDUCE_ALL" -e 8
refused "did you mean 'AVX2'"
launch 3 --algorithm rnig
refused "did you mean 'ring'"
launch 2 --expect-ranks 5
refused '5 ranks'

run "$REDUCE_ALL" --list
expect_rc 0
[ -s "$folder/err" ] && fail "nothing belongs on stderr"
cp "$folder/out" "$folder/alone"
launch 3 --list
expect_rc 0
cmp -s "$folder/alone" "$folder/out" || fail "the list differs under the launcher"
