#!/usr/bin/env bash
# lockstep ckpt as a launched program: exit codes, streams, a signal, a full disk, and other programs that read its
# files. tests/program has what the verbs print, refuse and write.
. "$(dirname "$0")/lib.bash"
tests=$(cd "$(dirname "$0")" && pwd)
cd "$folder" || exit 1
ckpt() { run "$REDUCE_ALL" ckpt "$@"; }
run "$REDUCE_ALL" train digits --synthetic-samples 128 --epochs 1 --save-every 1 --optimizer adam --threads 1 --run-dir a --nproc 2
expect_rc 0

ckpt verify a --nproc 2
expect_rc 0
expect_out 'is whole: 2 files, .* every byte as it was written$'
ckpt diff a nothing
expect_rc 2
expect_one_error
printf 'X' | dd of=a/checkpoints/step-000000002/rank-00000.h5 bs=1 seek=2500 conv=notrunc status=none
ckpt verify a --nproc 2
expect_rc 1
expect_out "^checkpoint 'a/checkpoints/step-000000002' is damaged: rank-00000.h5 differs from what was written$"
for name in w.h5 w.npz w.safetensors; do
  ckpt export a/weights.h5 --out "$name"
  expect_rc 0
done
run bash -c 'ulimit -f 2000; exec "$@"' bash "$REDUCE_ALL" ckpt export a/weights.h5 --out full.npz
expect_rc 3
expect_one_error
[ -z "$(find . -maxdepth 1 -name '*full*')" ] || fail "something is left of full.npz"
if command -v h5dump >/dev/null; then h5dump -d /fc2.bias w.h5 >dump || fail "h5dump cannot read it"; fi
if command -v python3 >/dev/null; then
  for ending in npz safetensors; do
    python3 "$tests/read_tensors.py" "w.$ending" >"$ending" || fail "w.$ending is not as it should be"
  done
  cmp npz safetensors || fail "the formats hold different tensors"
fi

# bench: its figures are in the file, and nothing is left, also after a signal.
mkdir bench
ckpt bench bench --bytes 3M --nproc 2 --json bench.json
expect_rc 0
if command -v python3 >/dev/null; then
  python3 - bench.json "$tests/../../share/schemas" <<'PY' || fail "not the JSON it should be"
import json, sys
b = json.load(open(sys.argv[1]))
assert b["complete"] and [s["stage"] for s in b["stages"]] == ["write", "save", "copy", "read", "load"], b
for s in b["stages"]:
    assert s["repeats"] == 7 and s["time_s_p50"] > 0 and s["GBps"] > 0 and s["plain_percent"] > 0, s
    assert s["time_s_p50_low"] <= s["time_s_p50"] <= s["time_s_p50_high"], s
try:
    import jsonschema
except ImportError:
    sys.exit()
jsonschema.validate(b, json.load(open(sys.argv[2] + "/ckpt_bench-1.schema.json")))
PY
fi
env --default-signal=INT "$REDUCE_ALL" ckpt bench bench --bytes 200M --repeats 1000 >/dev/null 2>&1 &
await compgen -G 'bench/*' >/dev/null
kill -INT $! && wait $!
[ $? -eq 130 ] || fail "expected 130"
[ -z "$(ls -A bench)" ] || fail "left after a signal: $(ls -A bench)"
