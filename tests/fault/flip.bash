#!/usr/bin/env bash
# flip.bash PARAMETER RANK: in `lockstep train` on 2 ranks, one bit of that parameter flips in the memory they share, between
# two steps; exit 1, and the parameter is named with the rank that wrote it.
# flip.bash none: the same without the fault succeeds, so it is the bit that bites.
. "$(dirname "$0")/ranks.bash"

# The parameters are hashed before the first step, which takes seconds, and looked at before it ends.
start nproc 2 train digits --batch 4096 --accumulate 32 --synthetic-samples 4096 --max-steps 1 --val-split '' --threads 1 \
  --seed 7 --run-dir "$run_dir"
if [ "$1" = none ]; then
  end
  expect_rc 0
  exit 0
fi

await has_logged '"kind":"start"'
"$FLIP_BIT" "$(process_of 0)" "$1" 7 >"$folder/flipped" 2>&1
flipped=$?
[ "$flipped" -ne 77 ] || { cat "$folder/flipped" && exit 77; }
[ "$flipped" -eq 0 ] || fail "no bit was flipped: $(cat "$folder/flipped")"
end
expect_rc 1
expect_one_error
expect_err "parameters of '$1' have changed in memory between two steps"
expect_err "rank $2 on node 0"
