#!/usr/bin/env bash
# A launched fire drill: one flipped bit on one rank fails the run. tests/program has the other faults.
. "$(dirname "$0")/lib.bash"

launch 3 -b 4K -e 4K -n 10 --visits 0 --json "$folder/r.json" --inject wrong:1:7
expect_rc 1
expect_out '^# WRONG: .* rank 1 on [^,]+, index 7: expected .*, found .*; 1 wrong'
expect_out '^# Out of bounds values : 1 FAILED$'
