#!/usr/bin/env bash
# lockstep train --replay: a step whose loss is not finite is kept with what was there before it, and made again on one rank.
schemas=$(cd "$(dirname "$0")/../../share/schemas" && pwd)
. "$(dirname "$0")/lib.bash"
cd "$folder" || exit 1
digits=("$REDUCE_ALL" train digits --synthetic-samples 512 --batch 32 --threads 1)

# On any number of ranks: the same step, the same samples, and parameters from before it.
for words in '--nproc 1' '--nproc 3' '--nproc 2 --deterministic' '--nproc 4 --precision bf16'; do
  rm -rf r
  # shellcheck disable=SC2086  # words are words
  run "${digits[@]}" --lr 1e30 --run-dir r $words
  expect_rc 1
  expect_one_error
  expect_err '^error: the loss of step 2 is not finite, at a learning rate of 1e\+30 \(rank [0-3] on .*, first in '
  expect_err '^info: to make that step again, on one rank: lockstep train --replay r/bad-step-000000002$'
  [ ! -e r/weights.h5 ] || fail "weights were kept"
  run "$REDUCE_ALL" ckpt verify r/bad-step-000000002
  expect_rc 0
  run "$REDUCE_ALL" train --replay r/bad-step-000000002
  expect_rc 0
  expect_out '^step      2 of the run, 2 of epoch 1; learning rate 1e\+30; '
  expect_out '^seen by   rank [0-3] of [1-4] on .*: first in .*, by samples [0-9]'
  expect_out '^data      all numbers of 32 samples are finite$'
  expect_out '^loss      nan over 32 samples, first not finite in '
  expect_out '^gradient  not finite, of '
  expect_out '^samples   not finite alone: [0-9]'
  expect_out '^verdict   not finite here either$'
done

# It is nothing to go on from.
run "${digits[@]}" --resume r/bad-step-000000002 --run-dir other
expect_rc 2
expect_one_error
expect_err 'is kept to make a bad step again, and not to go on from'

# A step that is finite after all, as where memory was at fault: here, of other parameters than were there.
run "${digits[@]}" --max-steps 1 --save-every 1 --run-dir good
expect_rc 0
mkdir finite
cp good/checkpoints/step-000000001/rank-00000.h5 finite
python3 - <<'PYTHON' || fail "no bundle could be made"
import json
bad = json.load(open('r/bad-step-000000002/index.json'))
good = json.load(open('good/checkpoints/step-000000001/index.json'))
good['content'] = dict(bad['content'], recipe=good['content']['recipe'], ranks=1)
json.dump(good, open('finite/index.json', 'w'))
PYTHON
"$DIGEST_OF" finite/index.json >finite/DONE
run "$REDUCE_ALL" train --replay finite
expect_rc 1
expect_out '^loss      [0-9.]+ over 32 samples$'
expect_out '^gradient  finite, of norm [0-9]'
expect_out '^verdict   finite here: '

# Both are as the schema says.
if python3 -c 'import jsonschema' 2>/dev/null; then
  python3 - "$schemas" r/bad-step-000000002 good/checkpoints/step-000000001 <<'PYTHON' || fail "not the JSON it should be"
import json, sys, jsonschema
schema = json.load(open(sys.argv[1] + '/checkpoint-1.schema.json'))
for path in sys.argv[2:]:
    index = json.load(open(path + '/index.json'))
    assert ('bad_step' in index['content']) == ('bad' in path)
    jsonschema.validate(index, schema)
PYTHON
fi

# Running statistics are those from before the step, too, on all ranks.
run "$REDUCE_ALL" train cifar_resnet18 --synthetic --synthetic-samples 64 --batch 16 --bn-group 8 --threads 1 --lr 1e30 --nproc 2 \
  --val-split '' --run-dir bn
expect_rc 1
run "$REDUCE_ALL" ckpt cat bn/bad-step-000000002 bn1.running_var
expect_rc 0
expect_out '^  0 of 64 not finite$'

# Parameters that an update made infinite are no checkpoint, and no result.
overflow=("$REDUCE_ALL" train toy --batch 32 --val-split '' --run-dir inf --keep 1 --save-every '32 samples' --resume auto --resume-anyway)
run "${overflow[@]}" --max-steps 2
expect_rc 0
run "${overflow[@]}" --max-steps 3 --lr 1e39
expect_rc 1
expect_one_error
expect_err "^error: parameter '[a-z.]*' is not finite"
[ "$(echo $(ls inf/checkpoints))" = step-000000002 ] || fail "left: $(ls inf/checkpoints)"
run "${overflow[@]}" --max-steps 6 --lr 1e39
expect_rc 1
expect_err '^warning: no checkpoint after step 3: .* is not finite; training goes on'
[ "$(echo $(ls inf/checkpoints))" = step-000000002 ] || fail "left: $(ls inf/checkpoints)"

# What cannot be made again is told.
run "$REDUCE_ALL" train --replay good/checkpoints/step-000000001
expect_rc 2
expect_one_error
expect_err 'no step that was not finite'
run "$REDUCE_ALL" train --replay nowhere
expect_rc 2
expect_err "'nowhere' is not there"
run "$REDUCE_ALL" train --replay r/bad-step-000000002 --nproc 2
expect_rc 2
expect_err 'nproc'
launch 2 train --replay r/bad-step-000000002
expect_rc 2
expect_one_error
expect_err '2 ranks were started'
run "$REDUCE_ALL" train digits --replay r/bad-step-000000002
expect_rc 2
printf x | dd of=r/bad-step-000000002/rank-00000.h5 bs=1 seek=3000 conv=notrunc 2>/dev/null
run "$REDUCE_ALL" train --replay r/bad-step-000000002
expect_rc 1
expect_one_error
expect_err 'rank-00000.h5'

# Of data that are not finite the samples are named.
{ for i in $(seq 64); do echo "0.$i,1,$([ "$i" -eq 40 ] && echo inf || echo 2)"; done; } | sed '1i a,b,y' >t.csv
run "$REDUCE_ALL" shard import csv t.csv --out d
expect_rc 0
run "$REDUCE_ALL" train toy --data d --val-split '' --max-steps 8 --batch 16 --run-dir bad --nproc 2
expect_rc 1
run "$REDUCE_ALL" train --replay "$(echo bad/bad-step-*)"
expect_rc 0
expect_out '^data      not finite: samples 39$'
expect_out '^samples   not finite alone: 39$'
# What was learned before that step trains on.
sed 's/inf$/2.5/' t.csv >finite.csv
run "$REDUCE_ALL" shard import csv finite.csv --out e
expect_rc 0
run "$REDUCE_ALL" train toy --data e --val-split '' --max-steps 3 --batch 16 --run-dir after --init-from "$(echo bad/bad-step-*)"
expect_rc 0
run "$REDUCE_ALL" train --replay "$(echo bad/bad-step-*)" --data nowhere
expect_rc 2

# A disk that is full costs what would be kept, and not the message.
mkdir small
if mount -t tmpfs -o size=1m none small 2>/dev/null; then
  trap 'umount "$folder/small"; rm -rf "$folder"' EXIT
  run "${digits[@]}" --lr 1e30 --run-dir small/r --save-weights w.h5
  expect_rc 1
  expect_one_error
  expect_err '^warning: the step is not kept for --replay: .*No space left'
  [ "$(echo $(ls small/r))" = 'log.jsonl run.json status.json' ] || fail "left: $(ls small/r)"
fi
echo "all as it should be"
