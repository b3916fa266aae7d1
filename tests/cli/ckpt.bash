#!/usr/bin/env bash
# lockstep ckpt: what it says of checkpoints that are whole, damaged, incomplete or different.
. "$(dirname "$0")/lib.bash"
tests=$(cd "$(dirname "$0")" && pwd)
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
expect_out '^step-000000004 +3 +4 +256 .* 1 +complete(, best)?$'
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
ln -sfn step-000000004 b/checkpoints/best  # what is damaged is removed with its name
mkdir b/checkpoints/.step-000000006.tmp-of-somebody
ckpt prune b --keep 1
expect_rc 0
[ "$(ls b/checkpoints)" = step-000000002 ] || fail "$(ls b/checkpoints)"
ckpt prune b/checkpoints/step-000000002
expect_rc 2

# The one with the best evaluation stays, and of every second epoch, whatever is kept of others.
named() {
  run "$REDUCE_ALL" train digits --synthetic-samples 128 --epochs 5 --save-every 1 --deterministic --threads 1 --lr 4 --keep 1 \
    --keep-epochs 2 --resume auto --run-dir n
  expect_rc 0
}
named
best=$(grep '"kind":"evaluation"' n/log.jsonl | sed 's/.*"step":\([0-9]*\),.*"loss":\([^,]*\),.*"top1_percent":\([^,]*\),.*/\3 \2 \1/' |
  sort -k1,1gr -k2,2g | head -1 | cut -d' ' -f3)
names() { for link in best epoch-002 epoch-004; do readlink "n/checkpoints/$link"; done | paste -sd' '; }
expected=$(printf 'step-%09d step-000000004 step-000000008' "$best")
[ "$(names)" = "$expected" ] || fail "$(ls -l n/checkpoints), not $expected"
rm -r n/checkpoints/step-000000010 n/checkpoints/epoch-004  # as if it had been killed before it gave the name
named
[ "$(names)" = "$expected" ] || fail "$(ls -l n/checkpoints), not $expected again"
ckpt ls n
expect_out '^step-000000004 .* complete, (best, )?epoch-002$'
ckpt prune n --keep 1
expect_rc 0
for name in best epoch-002 epoch-004; do
  ckpt verify "n/checkpoints/$name"
  expect_rc 0
  run "$REDUCE_ALL" train digits --synthetic-samples 128 --evaluate-only --init-from "n/checkpoints/$name" --run-dir "of-$name"
  expect_rc 0
done

for words in 'ls nothing' 'verify nothing' 'diff a nothing' 'prune nothing' 'diff a' ls lss 'prune a --keep 0' bench 'bench nothing' \
  'bench . --like nothing' 'bench . --like b --bytes 1M' 'bench . --bytes 1000T' 'bench . --json nothing/f.json'; do
  # shellcheck disable=SC2086  # words are words
  ckpt $words
  expect_rc 2
  expect_one_error
  expect_err 'expected: '
done
run_full "$REDUCE_ALL" ckpt ls b
expect_full

# bench: what a checkpoint costs, with those figures in the file, and nothing left.
mkdir bench
for words in '--bytes 3M' '--bytes 3M --nproc 2' '--like b --nproc 2 --repeats 1' '--bytes 1'; do
  # shellcheck disable=SC2086  # words are words
  ckpt bench bench $words --json bench.json
  expect_rc 0
  for stage in 'plain write, fsync' checkpoint 'training stands still' 'plain read' 'verify and read'; do expect_out "$stage"; done
  [ -z "$(ls -A bench)" ] || fail "left in the folder: $(ls -A bench)"
  if command -v python3 >/dev/null; then
    python3 - bench.json "$tests/../../share/schemas" <<'PY' || fail "not the JSON it should be"
import json, sys
b = json.load(open(sys.argv[1]))
assert b["complete"] and [s["stage"] for s in b["stages"]] == ["write", "save", "copy", "read", "load"], b
for s in b["stages"]:
    assert s["repeats"] in (1, 7) and s["time_s_p50"] > 0 and s["GBps"] > 0 and s["plain_percent"] > 0, s
    assert s["repeats"] == 1 or s["time_s_p50_low"] <= s["time_s_p50"] <= s["time_s_p50_high"], s
try:
    import jsonschema
except ImportError:
    sys.exit()
jsonschema.validate(b, json.load(open(sys.argv[2] + "/ckpt_bench-1.schema.json")))
PY
  fi
done
"$REDUCE_ALL" ckpt bench bench --bytes 200M --repeats 1000 >/dev/null 2>&1 &
await compgen -G 'bench/*' >/dev/null
kill -INT $! && wait $!
[ $? -eq 130 ] || fail "expected 130"
[ -z "$(ls -A bench)" ] || fail "left after a signal: $(ls -A bench)"
