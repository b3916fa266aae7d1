#!/usr/bin/env bash
# lockstep ckpt cat, export and import, and --init-from: weights that go out in any format come back to the bit.
. "$(dirname "$0")/lib.bash"
tests=$(cd "$(dirname "$0")" && pwd)
cd "$folder" || exit 1
train() { run "$REDUCE_ALL" train digits --synthetic-samples 128 --threads 1 "$@"; }
ckpt() { run "$REDUCE_ALL" ckpt "$@"; }
made() {
  ckpt "$@"
  expect_rc 0
}
# listed PLACE: its tensors with their digests, without the line above them.
listed() {
  made cat "$1"
  tail -n +2 out >"$2"
}
train --epochs 1 --save-every 1 --optimizer adam --lr 0.001 --run-dir a --nproc 2
expect_rc 0
step=a/checkpoints/step-000000002

made cat a
expect_out "^$step: recipe digits, model mnist_cnn, goes on at epoch 2, step 2, after 128 samples$"
expect_out '^exp_avg_sq/fc1.weight +\[128, 9216\] +float32 +4.72 MB  [0-9a-f]{32}$'
expect_out '^24 tensors, 14.4 MB$'
made cat "$step" fc2.bias exp_avg/fc2.bias
expect_out '^parameter/fc2.bias \[10\] float32$'
expect_out '^  from -?[0-9.e-]+ to [0-9.e-]+, mean '
[ "$(grep -c '^  0 of 10 not finite$' out)" -eq 2 ] || fail "not of both"
made cat a fc2.bias --all
cp out values
[ "$(wc -l <values)" -eq 10 ] || fail "not ten values"

# What is exported is what the run has saved, in every format, from a checkpoint and from a file.
listed a/weights.h5 saved
for name in w.h5 w.npz w.safetensors; do
  made export a --out "$name"
  expect_out "^$name: 8 tensors, 4.8 MB, from $step$"
  listed "$name" here
  cmp -s here saved || fail "$name has other weights"
  made cat "$name" fc2.bias --all
  cmp -s out values || fail "$name has other values"
  made export a/weights.h5 --out "again-$name"
  [ "$name" = w.h5 ] || cmp "$name" "again-$name" || fail "of the file something else than of the checkpoint"
  made export a --out "all-$name" --optimizer
  listed "all-$name" here
  grep -q '^24 tensors' here || fail "all-$name lacks states"
done
if command -v h5dump >/dev/null; then h5dump -d /exp_avg/fc2.bias all-w.h5 >dump || fail "h5dump cannot read it"; fi
if command -v python3 >/dev/null; then
  for name in w all-w; do
    for ending in npz safetensors; do
      python3 "$tests/read_tensors.py" "$name.$ending" >"$ending" || fail "$name.$ending is not as it should be"
    done
    cmp npz safetensors || fail "the formats hold different tensors"
  done
fi

# Back again.
for name in w.npz w.safetensors all-w.h5 all-w.npz all-w.safetensors; do
  made import "$name" --out "from-$name.h5"
  listed "from-$name.h5" here
  cmp -s here saved || fail "other weights came back from $name"
done
cmp w.h5 from-w.safetensors.h5 || fail "a safetensors file tells the model, too"
digest_from() {
  train --evaluate-only --digest --init-from "$@"
  expect_rc 0
  sed -n 's/^digest *//p' out
}
expected=$(digest_from a/weights.h5 --run-dir of)
[ -n "$expected" ] || fail "no digest"
for from in a "$step" w.h5 all-w.npz w.safetensors all-w.safetensors; do
  [ "$(digest_from "$from" --run-dir "of-${from//\//-}")" = "$expected" ] || fail "another model from $from"
done
[ "$(digest_from a --nproc 2 --run-dir two)" = "$expected" ] || fail "another model on 2 ranks"

# The newest whole one.
cp -r a b
printf 'X' | dd of="b/checkpoints/step-000000002/rank-00000.h5" bs=1 seek=2500 conv=notrunc status=none
cp -r "$step" b/checkpoints/step-000000001
[ "$(digest_from b --run-dir newest)" = "$expected" ] || fail "another model from the one before"
expect_err "^warning: checkpoint 'b/checkpoints/step-000000002' is damaged"
ckpt export b/checkpoints/step-000000002 --out damaged.npz
expect_rc 1
expect_one_error
[ ! -e damaged.npz ] || fail "made of a damaged one"

# What is there stays, unless it is to be replaced.
cp w.npz before
ckpt export a --out w.npz
expect_rc 2
expect_err "'w.npz' exists"
cmp w.npz before || fail "replaced"
made export a --out w.npz --force --optimizer
cmp w.npz all-w.npz || fail "not replaced"

# refused MESSAGE WORDS...: one message, exit code 2, and nothing is left.
refused() {
  local message=$1
  shift
  find . | sort >names
  ckpt "$@"
  expect_rc 2
  expect_one_error
  expect_err "$message"
  expect_err 'expected: '
  find . | sort | cmp - names || fail "something is left"
}
mkdir empty
touch names
refused "no tensor 'fc2.bais'" cat a fc2.bais
expect_err "did you mean 'fc2.bias'"
refused 'no effect without a tensor' cat a --all
refused 'there is no checkpoint' cat empty
refused 'cannot read .nothing' cat nothing
refused 'does not say which format' export a --out w.pt
refused 'out is missing' export a
refused 'No such file' export a --out nowhere/w.npz
refused 'no name of an HDF5 file' import w.npz --out x.npz
refused 'it is a folder' import a --out x.h5

# Files that are damaged, or that somebody wants to do harm with.
# safetensors HEADER DATA: such a file, bad.safetensors, with a header of fewer than 256 bytes.
safetensors() { printf '%b%s' "\\x$(printf '%x' "${#1}")\\0\\0\\0\\0\\0\\0\\0" "$1$2" >bad.safetensors; }
printf '\377\377\377\377\377\377\377\177{}' >bad.safetensors
refused 'its header has' import bad.safetensors --out x.h5
for header in '{"a":' '{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}}' \
  '{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}' \
  '{"a":{"dtype":"F32","shape":[99999999999],"data_offsets":[0,399999999996]}}'; do
  safetensors "$header" 12345678
  refused 'is no whole safetensors file' import bad.safetensors --out x.h5
  train --init-from bad.safetensors --run-dir bad
  expect_rc 2
  expect_one_error
  expect_err 'is no whole safetensors file.*\(--init-from\)$'
done
safetensors '{"a":{"dtype":"F8_E4M3","shape":[9999999999999],"data_offsets":[0,8]}}' 12345678
refused 'has a in no numbers' import bad.safetensors --out x.h5
safetensors '{"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}}' 12345678
refused 'has a in float64' import bad.safetensors --out x.h5
head -c 100000 all-w.npz >bad.npz
refused 'bad.npz' import bad.npz --out x.h5
printf 'x' | dd of=again-w.npz bs=1 seek=1000000 conv=notrunc status=none
refused 'CRC' import again-w.npz --out x.h5
printf 'no weights' >bad.h5
refused 'is no HDF5 file, .npz or .safetensors' import bad.h5 --out x.h5

# A disk that fills up.
for name in full.h5 full.npz full.safetensors; do
  run bash -c "ulimit -f 2000; trap '' XFSZ; \"\$@\"" bash "$REDUCE_ALL" ckpt export a --out "$name"
  expect_rc 3
  expect_one_error
  [ -z "$(find . -maxdepth 1 -name '*full*')" ] || fail "something is left of $name"
done
run_full "$REDUCE_ALL" ckpt cat a
expect_full
