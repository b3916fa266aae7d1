#!/usr/bin/env bash
# What is learned on GPUs is what is learned on the host: the model of every recipe, on any number of ranks. The GPUs are
# made up, and played by a recorder, as in train_device.
. "$(dirname "$0")/train_device_lib.bash"
tests=$(cd "$(dirname "$0")" && pwd)
cd "$folder" || exit 1
export LOCKSTEP_MADE_UP_GPU_TELLS=1

# Of what a file has of a run or dry run, in bytes.
memory_of() { sed -n -E 's/^memory +([0-9.]+) ([kM]?)B of GPU memory per rank[, ].*/\1\2/p' "$1" | tr k K | numfmt --from=si; }

# learned RANKS TOLERANCE NAME ARGUMENTS...: GPUs shared by each number of RANKS learn the same as one, within a thousandth,
# and within TOLERANCE what the host does. The memory that one rank takes is what it and a dry run tell, but for some bytes
# and as far as three digits tell it.
learned() {
  local ranks=$1 tolerance=$2 name=$3
  shift 3
  [[ " $* " == *' --precision '* ]] || set -- "$@" --precision f32
  trained "$@" --device host --run-dir "$name-host"
  local expected evaluated n memory taken told one=""
  expected=$(loss_of) evaluated=$(evaluated_of)
  for n in $ranks; do
    trained "$@" --device cuda --share-gpu --nproc "$n" --run-dir "$name-$n"
    expect_err '^device  made-up GPU'
    expect_err '^memory  .* of GPU memory per rank '
    near "$(loss_of)" "$expected" "$tolerance" || fail "on $n GPUs the loss is $(loss_of), on the host $expected"
    near "$(evaluated_of)" "$evaluated" "$tolerance" || fail "on $n GPUs $(evaluated_of) is evaluated, on the host $evaluated"
    one=${one:-$(loss_of)}
    near "$(loss_of)" "$one" 0.001 || fail "$n ranks come to the loss $(loss_of), one to $one"
    [ "$n" -eq 1 ] || continue
    memory=$(memory_of "$folder/err")
    taken=$(sed -n 's/^recorder: \([0-9]*\) bytes at most$/\1/p' "$folder/out")
    trained "$@" --device cuda --dry-run
    told=$(memory_of "$folder/out")
    [ "$memory" = "$told" ] || fail "a run tells $memory of memory, a dry run $told"
    near "$((taken - 256))" "$told" 0.006 || fail "$taken bytes of GPU memory are taken, and $told told"
  done
}
learned '1 2 3 4' 0.001 toy toy 3
toy=$(loss_of)
expect_out '^device  +[0-9.]+ .* rank [0-3] '
LOCKSTEP_MADE_UP_GPUS=3 trained toy 3 --precision f32 --nproc 3 --run-dir own
registered=$(loss_of)
expect_err '^device  3 GPUs, such as made-up GPU(, gradients registered with NCCL)?$'
if grep -q 'gradients registered with NCCL' "$folder/err"; then
  LOCKSTEP_HOST_NCCL_REGISTERS=none LOCKSTEP_MADE_UP_GPUS=3 trained toy 3 --precision f32 --nproc 3 --run-dir unregistered
  expect_err '^device  3 GPUs, such as made-up GPU$'
  [ "$(loss_of)" = "$registered" ] || fail "registered gradients come to $registered, others to $(loss_of)"
  # An NCCL that is older than the one the program was built with is not asked for what it has not.
  LOCKSTEP_HOST_NCCL_VERSION=21800 LOCKSTEP_MADE_UP_GPUS=3 trained toy 3 --precision f32 --nproc 3 --run-dir older
  expect_err '^device  3 GPUs, such as made-up GPU$'
  [ "$(loss_of)" = "$registered" ] || fail "registered gradients come to $registered, others to $(loss_of)"
  # Too old an NCCL, or one that cannot connect the ranks, is told before anything is trained.
  for unconnected in VERSION=21704 UNCONNECTED=identifier UNCONNECTED=ranks; do
    run env "LOCKSTEP_HOST_NCCL_$unconnected" LOCKSTEP_MADE_UP_GPUS=3 "$REDUCE_ALL" train toy 3 --nproc 3 --run-dir refused
    expect_rc 2
    expect_one_error
    expect_err '^error: NCCL [0-9.]+(, .*: system error: no interface that was asked for \(--device cuda\)| is too old \(libnccl.so.2\))$'
    expect_err '^  fix: .*(NCCL_SOCKET_IFNAME|LD_LIBRARY_PATH).*; or --device host$'
    [ ! -e refused ] || fail "a run that was refused has left something"
  done
  # Doctor tells what is too old, too.
  LOCKSTEP_HOST_NCCL_VERSION=21704 LOCKSTEP_MADE_UP_GPUS=2 run "$REDUCE_ALL" doctor --nproc 2 --recipe toy
  expect_rc 1
  expect_out '^gpus  *fail  *NCCL 2.17.4 is too old$'
fi
near "$registered" "$toy" 0.001 || fail "on GPUs of their own ranks come to $registered, where they share one to $toy"
learned '1 2 3 4' 0.001 movielens movielens --synthetic --max-steps 4
learned '1 2 3' 0.001 clipped movielens --synthetic --max-steps 4 --clip-norm 0.1 --accumulate 2
learned '1 2 3 4' 0.001 digits digits --synthetic-samples 120 --batch 24 --max-steps 2
# What GPUs are sent of images are pixels, of one size to train on and of another to evaluate.
learned '1 2' 0.001 cropped digits --synthetic-samples 120 --batch 24 --max-steps 3 --graph step \
  --augment crop:28:3,flip,normalize:0.156:0.186 --val-augment centercrop:20,resize:24,centercrop:28,normalize:0.2:0.3
learned '1 3' 0.02 bf16 digits --synthetic-samples 120 --batch 24 --max-steps 2 --precision bf16
# Groups of batch normalization within a rank, and over two of four.
learned '1 2 4' 0.001 resnet18 cifar_resnet18 --synthetic --synthetic-steps 1 --batch 8 --bn-group 4 --max-steps 2 --lr 0.01
# Batch normalization of 32 values in its last layers makes differences of 1e-7 to some of 1e-2: the host's own instruction
# sets differ by 3.5 %. Half the gradient would be 12 % off.
LOCKSTEP_MADE_UP_GPU_BYTES=4000000000 learned '1 2 4' 0.05 resnet50 resnet50_synthetic --image-size 64 --batch 8 --bn-group 8 \
  --synthetic-steps 1 --max-steps 2 --lr 0.005

# run.json tells where.
if python3 -c 'import jsonschema' 2>/dev/null; then
  run python3 "$tests/../unit/training/run/validate_run.py" toy-2 "$tests/../../share/schemas" train
  expect_rc 0
fi
grep -q '"uuids": \[' toy-2/run.json || fail "run.json does not tell which GPUs"
