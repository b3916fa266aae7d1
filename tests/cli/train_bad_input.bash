#!/usr/bin/env bash
# What cannot be trained is refused with one message before anything is made, and exit code 2.
. "$(dirname "$0")/shard_lib.bash"
cd "$folder" || exit 1

refused() {
  local message=$1
  shift
  run "$REDUCE_ALL" train "$@"
  expect_rc 2
  expect_one_error
  expect_err "$message"
  [ -z "$(ls -A)" ] || [ "$(ls -A | grep -cvE '^(out|err|kept|d|r)$')" -eq 0 ] || fail "something was left behind: $(ls -A)"
}

refused "did you mean 'toy'" tooy
refused "did you mean '--batch'" toy --bacth 3
refused 'batch' toy --batch 0
refused 'lr' toy --lr -1
refused "did you mean 'sgd'" toy --optimizer sdg
refused 'EPOCHS|number|epochs' toy fifty
refused 'nowhere' mnist_cnn --data nowhere
refused 'at least a sample for each rank' toy --batch 2 --nproc 3
refused 'lanes' digits --deterministic --nproc 3
resnet=(resnet50_synthetic --model resnet18 --image-size 32)
refused 'groups of 12 samples do not fill' "${resnet[@]}" --batch 24 --bn-group 12 --nproc 3
refused 'computed one after another' "${resnet[@]}" --batch 16 --bn-group 8 --accumulate 2 --nproc 2
refused 'groups of 16 samples .* in 4 lanes' "${resnet[@]}" --batch 16 --bn-group 16 --deterministic
refused 'f16 is a precision of GPUs' toy --precision f16 --device host --nproc 2
ONEDNN_MAX_CPU_ISA=AVX22 refused "did you mean 'AVX2'" toy --nproc 2
refused 'weights|none.h5' toy --init-from none.h5
made synth images --out d --samples 64 --height 4 --width 4
refused 'too small|image' mnist_cnn --data d --augment normalize:0.5:0.5 --classes 10 --val-split ''
refused 'whole numbers' movielens --data d
mkdir r && echo '{}' >r/run.json
refused 'another run|holds' toy --run-dir r
refused 'another run|holds' toy --run-dir r --nproc 2
rm -r r
refused 'save-weights' toy --save-weights none/w.h5
refused 'save-weights' toy --save-weights d
# What is there and is no file of weights stays, and a set of shards stays one.
cp -r d kept
ln -s "$folder/d/new.h5" r
for place in d/train-00000.h5 d/manifest.json d/new.h5 r; do
  refused "would lie in a set of shards" toy 1 --save-weights $place
done
refused 'holds a set of shards' toy 1 --run-dir d
expect_same d kept
rm -r r kept && cp d/train-00000.h5 r && cp r kept
refused 'no file of weights' toy 1 --save-weights r
cmp -s r kept || fail "the shard was replaced"
echo 'notes of mine' >r && cp r kept
refused 'no file of weights' toy 1 --save-weights r
refused 'no file of weights' toy 1 --save-weights r --nproc 2
cmp -s r kept || fail "the notes were replaced"
rm r kept
mkdir kept
for epochs in 1 2; do
  run "$REDUCE_ALL" train toy $epochs --save-weights kept/w.h5 --run-dir "kept/$epochs"
  expect_rc 0  # weights replace weights
done
rm -r kept
refused 'step-samples' toy --schedule step --step-size 0.0001
refused 'warm-up' toy 1 --schedule cosine --warmup '5000 samples'
refused 'the same shape' cifar_resnet18 --synthetic --image-size 64
refused "no split 'vla'" digits --val-split vla
refused 'no samples to evaluate on' toy --evaluate-only
expect_err 'fix: .*--data'
refused "model mnist_cnn does not take the samples of 'd'" mnist_cnn --data d --val-split ''
expect_err 'fix: '
for flag in '--save-weights w.h5' --compat --dry-run --profile '--lr 3' '--max-steps 3' '--epochs 2'; do
  # shellcheck disable=SC2086  # the words of a flag
  refused "${flag%% *} goes with training" digits --evaluate-only $flag
done
refused 'batch.*a whole number from 1 to 4294967295|-3 is out of range' toy --batch -3
refused 'from 1 to 512' toy --threads 513
refused 'samples that are no images: float32 \[20\]' toy --augment flip
refused '\(augment\)' toy --augment flip
refused '\(val-augment\)' digits --val-augment normalize:0.1/0.2/0.3:1
refused 'as many outputs as classes' resnet50_synthetic --no-synthetic --data d
resnet=(resnet50_synthetic --model resnet18 --image-size 32)
refused 'the last batch of an epoch' "${resnet[@]}" --batch 16 --bn-group 4 --synthetic-samples 21
cp "$(dirname "$0")/../../share/recipes/toy.toml" d/mine.toml
refused 'replaces no tutorial' d/mine.toml --compat

# Another number of ranks than the launcher has started; the same is fine.
launch 2 train toy --nproc 3
expect_rc 2
expect_one_error
expect_err 'started 2 ranks already'
launch 2 train toy 1 --nproc 2 --dry-run
expect_rc 0

# Ranks that read different recipes, as nodes may. A shell tells them apart by the launcher's variables (Open MPI, MPICH):
# mpiexec of Debian 13's Open MPI 5.0.7 crashes if it is given two commands.
# shellcheck disable=SC2016,SC2086  # expanded by that shell; the preflags are words
run "$MPIEXEC" "$MPIEXEC_NUMPROC_FLAG" 2 ${MPIEXEC_PREFLAGS:-} \
  bash -c 'exec "$0" train toy --lr 0.$((1 + ${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${SLURM_PROCID:-0}}}))' "$REDUCE_ALL"
expect_rc 2
expect_one_error
expect_err 'same recipe and flags on all ranks'

# A loss that is no number any more: named, exit 1.
run "$REDUCE_ALL" train toy --lr 1e30 --run-dir kept
expect_rc 1
expect_err 'the loss of step [0-9]+ is not finite'
expect_err 'first in [a-z]'

# Weights that are there already are somebody's.
mkdir theirs
ln -s ../victim-of-weights theirs/weights.h5
echo "another's" >victim-of-weights
run "$REDUCE_ALL" train toy 1 --run-dir theirs
expect_rc 2
expect_err "'theirs' holds another run"
[ "$(cat victim-of-weights)" = "another's" ] || fail "a file was replaced through a link"
[ "$(ls theirs)" = weights.h5 ] || fail "left behind: $(ls theirs)"

# A log that is a pipe keeps nobody waiting.
mkdir pipe
mkfifo pipe/log.jsonl
run "$REDUCE_ALL" train toy 1 --run-dir pipe --timeout 5
expect_rc 2
expect_err "'pipe' holds another run"

# In a folder for all somebody may have put a link where a temporary file could be expected. The shell becomes the
# program, so that its number is known.
mkdir tmp
echo "another's" >victim
run env TMPDIR="$PWD/tmp" bash -c 'ln -s "$PWD/victim" "$TMPDIR/lockstep-dry-run-$$.h5" && exec "$0" train toy --dry-run' \
  "$REDUCE_ALL"
expect_rc 0
[ "$(cat victim)" = "another's" ] || fail "a file was replaced through a link"
[ -z "$(find tmp -name 'lockstep*' -type d)" ] || fail "--dry-run left something behind"

echo "all as it should be"
