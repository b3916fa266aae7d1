#!/usr/bin/env bash
# --device: on a machine with GPUs that are made up, and played by a recorder. It also ends with 99 if something was
# enqueued in an order that a GPU need not keep.
. "$(dirname "$0")/train_device_lib.bash"
tests=$(cd "$(dirname "$0")" && pwd)
cd "$folder" || exit 1

# Without a GPU auto is the host and says why; cuda is refused, by one message.
LOCKSTEP_MADE_UP_GPUS=0 trained toy 2 --run-dir none
expect_err '^device  host: the NVIDIA driver shows no GPU to this process$'
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
LOCKSTEP_MADE_UP_GPUS=0 trained toy 1 --tune --run-dir none-tuned
expect_err '^warning: --tune has no effect: this run is on the host$'
trained toy 1 --tune --deterministic --run-dir none-timed
expect_err '^warning: --tune has no effect: this run chooses nothing by timing$'
trained toy 1 --tune --run-dir tuned
! grep -q 'warning: --tune' "$folder/err" || fail "a warning though there is a GPU"
trained toy 1 --share-gpu --run-dir own-gpu
! grep -q 'warning: --share-gpu' "$folder/err" || fail "a warning though there is a GPU"
run "$REDUCE_ALL" train toy --share-gpu --device host --run-dir refused
expect_rc 2
expect_err 'the host is no GPU to be shared'
# Nor is there a GPU for each rank.
run "$REDUCE_ALL" train toy --device cuda --nproc 2 --run-dir refused
expect_rc 2
expect_one_error
expect_err 'ranks 0 and 1 have one GPU, GPU-0.*--device cuda'
expect_err '  fix: .*--share-gpu'
[ ! -e refused ] || fail "a run that was refused has left something"
trained toy 2 --nproc 2 --run-dir auto-shared
expect_err '^device  host: ranks 0 and 1 have one GPU'

# What does not fit into a GPU's memory is refused before anything is trained, with a batch that does.
large=(resnet50_synthetic --model resnet18 --image-size 64 --batch 64 --bn-group 4 --synthetic-steps 1 --max-steps 1
  --device cuda)
LOCKSTEP_MADE_UP_GPU_BYTES=200000000 run "$REDUCE_ALL" train "${large[@]}" --run-dir refused
expect_rc 2
expect_one_error
expect_err 'a rank on .* needs .* for activations, and the GPU has, less a sixteenth for its libraries, 18[78] MB'
batch=$(sed -n 's/.*fix: --batch \([0-9]*\) or less.*/\1/p' "$folder/err")
[ "${batch:-0}" -ge 1 ] && [ "$batch" -lt 64 ] || fail "no batch that fits"
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
# And doctor.
LOCKSTEP_MADE_UP_GPU_BYTES=30000000 run "$REDUCE_ALL" doctor --recipe digits --device cuda
expect_rc 1
expect_out '^gpus  *fail .*a rank on .* needs .* for activations, and the GPU has'
expect_out 'fix: --batch [0-9]+ or less'
LOCKSTEP_MADE_UP_GPU_BYTES=400000000 run "$REDUCE_ALL" doctor --recipe digits
expect_rc 0
expect_out '^gpus  *ok .*; [0-9.]+ MB needed by a rank$'
run "$REDUCE_ALL" train toy --device cuda --dry-run --share-gpu --nproc 2 --init-from nowhere
expect_rc 2
expect_one_error
expect_err 'nowhere'
run "$REDUCE_ALL" train toy --device host --dry-run
expect_rc 0
expect_out '^memory  .* of host memory per rank'

# Does the device compute what the host does?
run "$REDUCE_ALL" train --self-test toy movielens mnist_cnn
expect_rc 0
expect_out '^device  made-up GPU$'
expect_out '^mnist_cnn  *bf16 .* ok$'
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

# What is learned is what is learned on the host, on any number of ranks, and run.json tells where.
# learned RANKS TOLERANCE NAME ARGUMENTS...
learned() {
  local ranks=$1 tolerance=$2 name=$3
  shift 3
  trained "$@" --device host --run-dir "$name-host"
  local expected evaluated n
  expected=$(loss_of) evaluated=$(evaluated_of)
  for n in $ranks; do
    trained "$@" --device cuda --share-gpu --nproc "$n" --run-dir "$name-$n"
    expect_err '^device  made-up GPU'
    expect_err '^memory  .* of GPU memory per rank '
    near "$(loss_of)" "$expected" "$tolerance" || fail "on $n GPUs the loss is $(loss_of), on the host $expected"
    near "$(evaluated_of)" "$evaluated" "$tolerance" || fail "on $n GPUs $(evaluated_of) is evaluated, on the host $evaluated"
  done
}
learned '1 2 3' 0.001 toy toy 3
toy=$(loss_of)
expect_out '^device  +[0-9.]+ .* rank [0-2] '
LOCKSTEP_MADE_UP_GPUS=3 trained toy 3 --nproc 3 --run-dir own
registered=$(loss_of)
expect_err '^device  3 GPUs, such as made-up GPU(, gradients registered with NCCL)?$'
if grep -q 'gradients registered with NCCL' "$folder/err"; then
  LOCKSTEP_HOST_NCCL_REGISTERS=none LOCKSTEP_MADE_UP_GPUS=3 trained toy 3 --nproc 3 --run-dir unregistered
  expect_err '^device  3 GPUs, such as made-up GPU$'
  [ "$(loss_of)" = "$registered" ] || fail "registered gradients come to $registered, others to $(loss_of)"
fi
near "$registered" "$toy" 0.001 || fail "on GPUs of their own ranks come to $registered, where they share one to $toy"
learned '1 2 3' 0.001 movielens movielens --synthetic --max-steps 4
learned '1 2 3' 0.001 clipped movielens --synthetic --max-steps 4 --clip-norm 0.1 --accumulate 2
learned '1 2 3' 0.001 digits digits --synthetic-samples 120 --batch 24 --max-steps 2
# What GPUs are sent of images are pixels, of one size to train on and of another to evaluate.
learned '1 2' 0.001 cropped digits --synthetic-samples 120 --batch 24 --max-steps 3 --graph step \
  --augment crop:28:3,flip,normalize:0.156:0.186 --val-augment centercrop:20,resize:24,centercrop:28,normalize:0.2:0.3
learned '1 3' 0.02 bf16 digits --synthetic-samples 120 --batch 24 --max-steps 2 --precision bf16
learned 1 0.001 resnet resnet50_synthetic --model resnet18 --image-size 64 --batch 16 --bn-group 8 --synthetic-steps 1 \
  --max-steps 2 --lr 0.0001
if python3 -c 'import jsonschema' 2>/dev/null; then
  run python3 "$tests/../unit/training/run/validate_run.py" toy-2 "$tests/../../share/schemas" train
  expect_rc 0
fi
grep -q '"uuids": \[' toy-2/run.json || fail "run.json does not tell which GPUs"

# The same bits from run to run, also where it was interrupted, and on the device a checkpoint was not made on.
trained toy 6 --device cuda --digest --deterministic --share-gpu --nproc 2 --run-dir whole
whole=$(digest_of)
trained toy 3 --device cuda --deterministic --share-gpu --nproc 2 --save-every 3 --run-dir half
trained toy 6 --device cuda --digest --deterministic --share-gpu --nproc 2 --resume half --resume-anyway --run-dir rest
[ "$(digest_of)" = "$whole" ] || fail "other bits than without an interruption: $whole"
trained toy 6 --device host --resume half --resume-anyway --run-dir rest-host
near "$(loss_of)" "$(sed -n 's/.*"loss": *\([0-9.e-]*\).*/\1/p' whole/status.json | head -1)" 0.001 ||
  fail "the host does not go on where the GPU was"

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
