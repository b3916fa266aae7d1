#!/usr/bin/env bash
# flip.bash: in `lockstep train` on 2 ranks one bit of a parameter flips between two steps, in the memory that they share (--inject).
# Where the guard looks, the rank that writes it and the parameter are named, with exit code 1, or the run goes back to a
# checkpoint and ends with the bits of one in which nothing flipped; elsewhere the result is another one, so the bit bites.
. "$(dirname "$0")/ranks.bash"
cd "$folder" || exit 1
train=("$REDUCE_ALL" train digits --batch 64 --synthetic-samples 256 --val-split '' --epochs 40 --threads 1 --deterministic --digest --nproc 2)
digest() { grep '^digest ' out; }
# whole STEPS FLAGS...: a run without a fault, with its digest as $whole.
whole() {
  rm -rf whole
  run "${train[@]}" --run-dir whole --max-steps "$@"
  expect_rc 0
  whole=$(digest)
}

# Each rank writes a part of the arena, in which the first parameter of the backward pass has parts of both.
for flip in fc2.weight:0 fc2.weight:1 conv1.bias:1; do
  rm -rf r
  run "${train[@]}" --run-dir r --max-steps 3 --inject "flip:$flip:1"
  expect_rc 1
  expect_one_error
  expect_err '^warning: a fire drill: faults are injected, flip:'
  expect_err "parameters of '${flip%:*}' have changed in memory between two steps"
  expect_err "rank ${flip#*:} on node 0"
  grep -q "\"faults\": \[\"flip:$flip:1\"\]" <(tr -d '\n ' <r/run.json | sed 's/"faults":/"faults": /') || fail "run.json: $(cat r/run.json)"
done

whole 3
run "${train[@]}" --run-dir unseen --max-steps 3 --inject flip:fc2.weight:0:2
expect_rc 0
[ "$(digest)" != "$whole" ] || fail "the same result"

for flags in '' '--clip-norm 1' '--optimizer lamb --lr 0.01'; do
  rm -rf first back
  # shellcheck disable=SC2086  # words are words
  whole 2 $flags
  # shellcheck disable=SC2086
  run "${train[@]}" --run-dir first --max-steps 1 --save-every 1 $flags
  expect_rc 0
  # shellcheck disable=SC2086
  run "${train[@]}" --resume first --run-dir back --max-steps 2 --inject flip:fc2.weight:0:2 $flags
  expect_rc 0
  expect_err "^warning: after step 2: parameters of 'fc2.weight' have changed in memory between two steps \(rank 0 on node 0\); \
going back to first/checkpoints/step-000000001"
  grep -q '"kind":"resume","epoch":.*,"step":1,.*"why":"parameters of ' back/log.jsonl || fail "log: $(cat back/log.jsonl)"
  [ "$(digest)" = "$whole" ] || fail "another result than $whole"
done

# While a checkpoint is being written, after the hash of the step it is of and before that is compared: by the rank that does not
# look after checkpoints. It is set aside, and the one before it is still there.
whole 120
run "${train[@]}" --run-dir saved --max-steps 120 --save-every '3200 samples' --keep 1 \
  --inject flip:conv1.bias:1:101,late:0:sync:3:300ms
expect_rc 0
expect_err "^warning: checkpoint 'saved/checkpoints/step-000000100' may hold what has changed"
expect_err '^warning: after step 10[0-9]: .* \(rank 1 on node 0\); going back to saved/checkpoints/step-000000050'
[ "$(echo $(ls saved/checkpoints))" = 'step-000000100 step-000000100.suspect step-000000120' ] ||
  [ "$(echo $(ls saved/checkpoints))" = 'step-000000100.suspect step-000000120' ] || fail "left: $(ls saved/checkpoints)"
[ "$(digest)" = "$whole" ] || fail "another result than $whole"
