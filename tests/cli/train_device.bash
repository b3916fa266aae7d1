#!/usr/bin/env bash
# --device: on a machine with GPUs that are made up, and played by a recorder. It also ends with 99 if something was
# enqueued in an order that a GPU need not keep.
. "$(dirname "$0")/train_device_lib.bash"
tests=$(cd "$(dirname "$0")" && pwd)
cd "$folder" || exit 1

# Without a GPU auto is the host and says why; cuda is refused, by one message.
LOCKSTEP_MADE_UP_GPUS=0 trained toy 2 --run-dir none
expect_err '^device  host: the NVIDIA driver shows no GPU to this process$'
# So it is of a program that cannot train there, and doctor says so.
LOCKSTEP_MADE_UP_LACK='cuDNN is not in it' trained toy 2 --run-dir lacking
expect_err '^device  host: cuDNN is not in it$'
LOCKSTEP_MADE_UP_LACK='cuDNN is not in it' run "$REDUCE_ALL" doctor --recipe toy
expect_rc 0
expect_out '^gpus  *skipped  *not checked: no GPU for this job: cuDNN is not in it$'
LOCKSTEP_MADE_UP_LACK='cuDNN is not in it' run "$REDUCE_ALL" doctor --recipe toy --device cuda
expect_rc 1
expect_out '^gpus  *fail .*cuDNN is not in it'
for n in 1 2; do
  LOCKSTEP_MADE_UP_GPUS=0 run "$REDUCE_ALL" train toy --device cuda --nproc "$n" --run-dir refused
  expect_rc 2
  expect_one_error
  expect_err 'has no GPU: the NVIDIA driver shows no GPU'
  expect_err '  fix: .*--device host'
done
run "$REDUCE_ALL" train toy --device gpu
expect_rc 2
expect_err "unknown device 'gpu'"
expect_err "did you mean 'cuda'"
# Where no GPU is used none is shared.
for n in 1 2; do
  LOCKSTEP_MADE_UP_GPUS=0 trained toy 1 --share-gpu --nproc "$n" --run-dir "none-shared-$n"
  [ "$(grep -c '^warning: --share-gpu has no effect: this run is on the host$' "$folder/err")" -eq 1 ] || fail "no warning, or several"
done
LOCKSTEP_MADE_UP_GPUS=0 trained toy 1 --autotune --run-dir none-tuned
expect_err '^warning: --autotune has no effect: this run is on the host$'
trained toy 1 --autotune --deterministic --run-dir none-timed
expect_err '^warning: --autotune has no effect: this run chooses nothing by timing$'
trained toy 1 --autotune --run-dir tuned
! grep -q 'warning: --autotune' "$folder/err" || fail "a warning though there is a GPU"
trained toy 1 --share-gpu --run-dir own-gpu
! grep -q 'warning: --share-gpu' "$folder/err" || fail "a warning though there is a GPU"
# In a precision that nobody names a GPU computes in one that it multiplies fastest in.
for kind in '90 bf16' '80 bf16' '70 f16'; do
  LOCKSTEP_MADE_UP_GPU_ARCHITECTURE=${kind% *} trained toy 1 --run-dir "sm-${kind% *}"
  expect_err "^model  *toy: 21 parameters, ${kind#* }\$"
  grep -q "\"precision\": \"${kind#* }\"" "sm-${kind% *}/run.json" || fail "run.json does not tell that precision"
done
LOCKSTEP_MADE_UP_GPU_ARCHITECTURE=75 run "$REDUCE_ALL" train toy --precision bf16 --run-dir refused
expect_rc 2
expect_one_error
expect_err 'does not multiply matrices in bf16 \(precision\)'
LOCKSTEP_MADE_UP_GPU_ARCHITECTURE=75 run "$REDUCE_ALL" doctor --recipe toy --device cuda
expect_rc 0
LOCKSTEP_MADE_UP_GPU_ARCHITECTURE=75 run "$REDUCE_ALL" train --self-test toy
expect_rc 0
expect_out '^toy  *f16 .* ok$'
! grep -q bf16 "$folder/out" || fail "a precision that the GPU has not"
run "$REDUCE_ALL" train toy --share-gpu --device host --run-dir refused
expect_rc 2
expect_err 'the host is no GPU to be shared'
# Nor is there a GPU for each rank.
run "$REDUCE_ALL" train toy --device cuda --nproc 2 --run-dir refused
expect_rc 2
expect_one_error
expect_err 'ranks 0 and 1 share one GPU, GPU-0.*--device cuda'
expect_err '  fix: .*--share-gpu'
[ ! -e refused ] || fail "a run that was refused has left something"
trained toy 2 --nproc 2 --run-dir auto-shared
expect_err '^device  host: ranks 0 and 1 share one GPU'

# What does not fit into a GPU's memory is refused before anything is trained, with the largest batch that does.
large=(resnet50_synthetic --model resnet18 --image-size 64 --batch 64 --bn-group 4 --synthetic-steps 1 --max-steps 1
  --device cuda)
LOCKSTEP_MADE_UP_GPU_BYTES=200000000 run "$REDUCE_ALL" train "${large[@]}" --run-dir refused
expect_rc 2
expect_one_error
expect_err 'a rank on .* needs .* for activations, and the GPU has, less a sixteenth for its libraries, 18[78] MB'
batch=$(sed -n 's/.*fix: --batch \([0-9]*\) or less.*/\1/p' "$folder/err")
[ "${batch:-0}" -ge 1 ] && [ "$batch" -lt 64 ] || fail "no batch that fits"
LOCKSTEP_MADE_UP_GPU_BYTES=200000000 run "$REDUCE_ALL" train "${large[@]}" --batch $((batch + 4)) --dry-run
expect_rc 2
# So it is where ranks share the GPU, and where groups are the whole batch, which follow it then.
for words in '380 --nproc 2 --share-gpu --batch 48' '190 --batch 64 --bn-group 64' '380 --nproc 2 --share-gpu --batch 48 --bn-group 48'; do
  read -r -a words <<<"$words"
  LOCKSTEP_MADE_UP_GPU_BYTES=${words[0]}000000 run "$REDUCE_ALL" train "${large[@]}" "${words[@]:1}" --dry-run
  expect_rc 2
  fix=$(sed -n 's/.*fix: \(--batch [0-9]*\) or less.*/\1/p' "$folder/err")
  group=$(sed -n 's/.* or less (and \(--bn-group [0-9]*\), if flag or recipe gives one).*/\1/p' "$folder/err")
  # shellcheck disable=SC2086  # words
  LOCKSTEP_MADE_UP_GPU_BYTES=${words[0]}000000 trained "${large[@]}" "${words[@]:1}" ${fix:?no batch} $group --dry-run
done
# A dry run tells all of that too, ends as the run would, and takes none of the memory.
LOCKSTEP_MADE_UP_GPU_BYTES=200000000 run "$REDUCE_ALL" train "${large[@]}" --dry-run
expect_rc 2
expect_one_error
expect_out '^steps  .* at most 64 samples of a rank each'
expect_out '^memory  .* of GPU memory per rank, of it .* for activations; it does not fit: 18[78] MB are left$'
expect_err "fix: --batch $batch or less"
LOCKSTEP_MADE_UP_GPU_BYTES=300000000 run "$REDUCE_ALL" train "${large[@]}" --dry-run --share-gpu --nproc 2
expect_rc 2
expect_one_error
expect_out '^memory  .* it does not fit: 28[12] MB are left for 2 ranks$'
LOCKSTEP_MADE_UP_GPU_BYTES=200000000 run "$REDUCE_ALL" train "${large[@]}" --batch "$batch" --dry-run
expect_rc 0
expect_out '^memory  .* of GPU memory per rank, of it .* for activations; it fits: 18[78] MB are left$'
expect_out '^traffic  *0 B of gradients'
expect_out '^model  *resnet18, bf16$'
expect_out '^device  *made-up GPU$'
# And doctor.
LOCKSTEP_MADE_UP_GPU_BYTES=30000000 run "$REDUCE_ALL" doctor --recipe digits --device cuda
expect_rc 1
expect_out '^gpus  *fail .*a rank on .* needs .* for activations, and the GPU has'
expect_out 'fix: --batch [0-9]+ or less'
LOCKSTEP_MADE_UP_GPU_BYTES=400000000 run "$REDUCE_ALL" doctor --recipe digits
expect_rc 0
expect_out '^gpus  *ok .*; [0-9.]+ MB needed by a rank$'
# So it is of an evaluation, which has no parts.
LOCKSTEP_MADE_UP_GPU_BYTES=35000000 run "$REDUCE_ALL" train digits --evaluate-only --synthetic-samples 640 --batch 500
expect_rc 2
expect_one_error
batch=$(sed -n 's/.*fix: --batch \([0-9]*\) or less; --device host .*/\1/p' "$folder/err")
LOCKSTEP_MADE_UP_GPU_BYTES=35000000 trained digits --evaluate-only --synthetic-samples 640 --batch "${batch:?no batch}"
expect_err '^info: evaluated in bf16 on made-up GPU$'
LOCKSTEP_MADE_UP_GPU_BYTES=35000000 run "$REDUCE_ALL" train digits --evaluate-only --synthetic-samples 640 --batch $((batch + 1))
expect_rc 2
run "$REDUCE_ALL" train toy --device cuda --dry-run --share-gpu --nproc 2 --init-from nowhere
expect_rc 2
expect_one_error
expect_err 'nowhere'
run "$REDUCE_ALL" train toy --device host --dry-run
expect_rc 0
expect_out '^memory  .* of host memory per rank'
expect_out '^model  *toy, f32$'
! grep -q '^device' "$folder/out" || fail "a device that nobody wonders at"

# Does the device compute what the host does?
run "$REDUCE_ALL" train --self-test toy movielens mnist_cnn bottlenecks
expect_rc 0
expect_out '^device  made-up GPU$'
expect_out '^mnist_cnn  *bf16 .* ok$'
expect_out '^bottlenecks  *f32 .* 4e-01  ok$'
! grep -q '^resnet50' "$folder/out" || fail "a model that was not asked for"
expect_out '^verdict the device computes what the host does$'
run "$REDUCE_ALL" train --self-test tou
expect_rc 2
expect_err "unknown model 'tou'"
for words in '--batch 8' --batch=8 '--nproc 2' --share-gpu '--run-dir refused' --dry-run; do
  # shellcheck disable=SC2086  # words
  run "$REDUCE_ALL" train toy --self-test $words
  expect_rc 2
  flag=${words%% *}
  expect_err "^error: ${flag%%=*} does not go with --self-test"
  expect_err '  expected: names of models, and of flags .*--device, --timeout'
done
run "$REDUCE_ALL" train --self-test --devise host
expect_rc 2
expect_err "unknown flag '--devise'"
expect_err "did you mean '--device'"

# The same bits from run to run, also where it was interrupted, and on the device a checkpoint was not made on.
trained toy 6 --device cuda --precision f32 --digest --deterministic --share-gpu --nproc 2 --run-dir whole
whole=$(digest_of)
trained toy 3 --device cuda --precision f32 --deterministic --share-gpu --nproc 2 --save-every 3 --run-dir half
trained toy 6 --device cuda --precision f32 --digest --deterministic --share-gpu --nproc 2 --resume half --resume-anyway --run-dir rest
[ "$(digest_of)" = "$whole" ] || fail "other bits than without an interruption: $whole"
trained toy 6 --device host --resume half --resume-anyway --run-dir rest-host
near "$(loss_of)" "$(sed -n 's/.*"loss": *\([0-9.e-]*\).*/\1/p' whole/status.json | head -1)" 0.001 ||
  fail "the host does not go on where the GPU was"

# --verify-resume does it where it is told to, and all of its runs where the first one was.
verify=(digits --synthetic-samples 64 --batch 8 --max-steps 4 --verify-resume)
LOCKSTEP_MADE_UP_GPUS=0 run "$REDUCE_ALL" train "${verify[@]}" --device cuda
expect_rc 2
expect_one_error
# verified DEVICE N RESUMED ARGUMENTS...: on DEVICE by N ranks, and resumed by these numbers of them.
verified() {
  local on=$1 n=$2 resumed=$3
  trained "${verify[@]}" --nproc "$n" "${@:4}"
  ! grep '^info: .* s, on ' "$folder/err" | grep -v " s, on $on\$" || fail "a run elsewhere than on $on"
  [ "$(sed -n 's/^resumed  *\([0-9]\) .* yes$/\1/p' "$folder/out" | paste -s -d ' ')" = "$resumed" ] || fail "other runs resumed"
}
verified 'the host' 1 '1 2' --device host
verified 'the host' 2 '2 1'
verified 'made-up GPU' 1 1
verified 'made-up GPU' 2 2 --device cuda --share-gpu

# In f16 the first steps are skipped until the scale of the loss fits: that, and how many were, is kept too.
f16=(digits --synthetic-samples 64 --batch 4 --precision f16 --digest)
trained "${f16[@]}" --device cuda --max-steps 8 --run-dir f16
f16_whole=$(digest_of)
trained "${f16[@]}" --device cuda --max-steps 4 --save-every 16 --run-dir f16-half
grep -A4 '"loss_scale": {' f16-half/checkpoints/step-*/index.json | grep -q '"updates": [123]$' || fail "no step was skipped, or none is told"
trained "${f16[@]}" --device cuda --max-steps 8 --resume f16-half --run-dir f16-rest
[ "$(digest_of)" = "$f16_whole" ] || fail "in f16 other bits than without an interruption"
trained "${f16[@]}" --device host --precision f32 --max-steps 8 --save-every 32 --resume f16-half --run-dir f16-host
grep -A4 '"loss_scale": {' f16-host/checkpoints/step-*8/index.json | grep -q '"updates": [567]$' || fail "the host forgets skipped steps"

# Time by layer, between marks that change nothing: the limits are as small as what this memory has room for.
export LOCKSTEP_MADE_UP_GPU_BYTES=100000000
for n in 1 2; do
  profiled=(digits --synthetic-samples 64 --batch 8 --max-steps 8 --device cuda --share-gpu --digest --nproc "$n" --precision bf16)
  trained "${profiled[@]}" --run-dir "unprofiled-$n"
  plain=$(digest_of)
  trained "${profiled[@]}" --profile --run-dir "profiled-$n"
  [ "$(digest_of)" = "$plain" ] || fail "other bits with --profile"
  expect_out '^conv2 +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+  product +[0-9]+$'
  expect_out '^all layers '
  expect_out '^step  .*, mean of [1-9][0-9]* steps and all ranks'
  expect_out '^limits  .* matrices of 256x256; .* a ReLU of 256 KiB;$'
  grep -q '"kind": *"profile".*"limit_product_side": *256,' "profiled-$n/log.jsonl" || fail "no line of the profile"
done
unset LOCKSTEP_MADE_UP_GPU_BYTES
if python3 -c 'import jsonschema' 2>/dev/null; then
  run python3 "$tests/../unit/training/run/validate_run.py" profiled-2 "$tests/../../share/schemas" train evaluation profile
  expect_rc 0
fi

# A loss that is not finite ends the run with what was there before that step, which the host can make again.
run "$REDUCE_ALL" train toy 5 --lr 1e30 --optimizer sgd --device cuda --nproc 2 --share-gpu --run-dir bad
expect_rc 1
expect_one_error
expect_err 'the loss of step 3 is not finite'
trained --replay bad/bad-step-000000003
expect_out 'verdict   not finite here either'
