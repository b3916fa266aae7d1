#!/usr/bin/env bash
# The tutorial's known answer: hellos in rank order, before and after, and W(W-1)/2.
. "$(dirname "$0")/lib.bash"

launch 4 --demo
expect_rc 0
expect_out 'rank 3: before 3 3 3 3$'
expect_out 'rank 0: after 6 6 6 6$'
expect_out 'rank 3: after 6 6 6 6$'
expect_out 'W\(W-1\)/2 = 6'
[ "$(grep -oE 'Hello from rank [0-9]' "$folder/out" | tr -dc '0-9')" = 0123 ] || fail "hellos out of order"
[ "$(grep -oE 'rank [0-9]: after' "$folder/out" | tr -dc '0-9')" = 0123 ] || fail "results out of order"

launch 3 --demo --algorithm ring
expect_rc 0
expect_out 'ring'
expect_out 'after 3 3 3 3$'
launch 1 --demo
expect_rc 0
