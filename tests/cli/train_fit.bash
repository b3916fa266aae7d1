#!/usr/bin/env bash
# Training takes kinds and sizes of samples from the set; what model, recipe or flag cannot take of it is refused before
# anything starts, once, on any number of ranks, and leaves nothing behind; so is what memory is too small for.
. "$(dirname "$0")/shard_lib.bash"
cd "$folder" || exit 1

# npy FILE SHAPE NUMBER...: an array of int64, as NumPy writes it.
npy() {
  local file=$1 header="{'descr': '<i8', 'fortran_order': False, 'shape': $2, }" number bits at
  shift 2
  {
    printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "$header"
    for number; do
      bits=$(printf %016x "$number")
      for at in 14 12 10 8 6 4 2 0; do printf '%b' "\\x${bits:at:2}"; done
    done
  } >"$file"
}

# made_npy OUT SHAPE_OF_X "X..." SHAPE_OF_Y "Y..." FLAG...: a set of these arrays.
# shellcheck disable=SC2086  # numbers are words
made_npy() {
  local out=$1
  mkdir arrays
  npy arrays/x.npy "$2" $3
  npy arrays/y.npy "$4" $5
  shift 5
  made import npy arrays --out "$out" "$@"
  rm -r arrays
}

trained() {
  run "$REDUCE_ALL" train "$@"
  expect_rc 0
}

# refused MESSAGE ARGUMENTS...: on one and two ranks in turn.
n_refused=0
refused() {
  local message=$1
  shift
  run "$REDUCE_ALL" train "$@" --nproc $((++n_refused % 2 + 1)) --run-dir none
  expect_rc 2
  expect_one_error
  expect_err "$message"
  expect_err 'expected: '
  expect_err 'fix: '
  [ ! -e none ] || fail "a folder of the run was left"
}

loss_of() { sed -n 's/^training  *loss \([^,]*\).*/\1/p' "$folder/out"; }

# Whole numbers, inputs and targets, are numbers to a model that learns numbers: one target of four, y = -3 + 2 a, and
# two of them a sample; the loss is as small as they are near.
made_npy whole '(4, 2)' '0 1 1 0 2 1 3 1' '(4,)' '-3 -1 1 3' --no-classes
trained toy 300 --data whole --lr 0.1 --val-split '' --nproc 2 --run-dir whole-run
awk -v loss="$(loss_of)" 'BEGIN { exit !(loss != "" && loss < 1e-3) }' || fail "the loss is $(loss_of)"
made_npy pairs '(2, 2)' '0 1 1 0' '(2, 3)' '1 2 3 4 5 6'
trained toy 1 --data pairs --val-split '' --run-dir pairs-run
made_npy classes '(4, 2)' '0 1 1 0 2 1 3 1' '(4,)' '0 1 2 1'
refused 'y of the set is one of 3 classes' toy --data classes
expect_err 'no-classes'
refused 'x of the set is int64 \[2\]' mnist_cnn --data whole
made_npy numbered '(2, 1, 2, 2)' '0 1 1 0 2 1 3 1' '(2,)' '1 2' --no-classes
refused 'the set has no classes: y is int64 \[\]' mnist_cnn --data numbered

# Advice does not lead in circles: no flag helps with labels that are words, nor with tables for a model of images.
printf 'a,b,species\n1,2,setosa\n2,3,virginica\n' >words.csv
made import csv words.csv --out words
refused 'y of the set is words: setosa, ' toy --data words
expect_err 'there is no model of classes of tables'
for recipe in digits movielens; do refused 'x of the set is float32 \[2\]' $recipe --data words; done

# Users and items are as many as the set has, of all its splits; ratings may be whole numbers.
made_npy ratings '(6, 2)' '0 1 1 0 700 1 3 20 2 2 0 3' '(6,)' '1 2 3 4 5 4' --no-classes --val 0.5
trained movielens 1 --data ratings --nproc 2 --run-dir ratings-run
# The root of the mean squared error, in the unit of the ratings, of training and evaluation.
for word in training evaluation; do expect_out "^$word  *loss [0-9.]+, rmse [0-9.]+"; done
expect_err 'evaluation: loss [0-9.]+, rmse [0-9.]+ of 3 samples'
for kind in evaluation final; do
  grep "\"kind\": *\"$kind\"" ratings-run/log.jsonl | grep -q '"rmse": *[0-9]' || fail "no rmse in the line $kind"
done
if command -v h5dump >/dev/null; then
  run h5dump -H ratings-run/weights.h5
  expect_out '\( 701, 63 \)'  # fastai's rule for widths
  expect_out '\( 21, 9 \)'
fi
trained movielens 1 --data ratings --users 800 --items 21 --run-dir more-run
refused 'the set has 701 users, the model rows for 610' movielens --data ratings --users 610
expect_err 'users'
sed 's/^model.*/&\nitems = 20/' "$(dirname "$0")/../../share/recipes/movielens.toml" >small.toml
refused 'the set has 21 items, the model rows for 20' small.toml --data ratings
printf 'userId,movieId,rating,timestamp\n7,5,3.5,1\n9,5,4,2\n7,1000000,1,3\n' >ratings.csv
made import movielens ratings.csv --out films
trained movielens 1 --data films --run-dir films-run

# A limit of steps is what per cent, epochs and the time left count: after the tenth of twenty it is half done.
trained toy 50 --max-steps 20 --run-dir limited
expect_err '^epoch 1/1  50 %'
trained mnist_cnn --synthetic --synthetic-samples 8 --batch 4 --max-steps 1 --val-split '' --run-dir classes-run
grep -q rmse out && fail "classes have no squared error"

# What is no pair of ids.
made_npy triples '(2, 3)' '0 1 2 1 0 2' '(2,)' '1 2' --no-classes
refused 'x of the set is int64 \[3\]' movielens --data triples
made_npy negative '(2, 2)' '0 1 -1 0' '(2,)' '1 2' --no-classes
refused 'x has the number -1 in column 0, which is no id' movielens --data negative

# More memory than any node has, and more than a limit leaves: told before any of it is taken, with what would fit.
huge=100000000
for ranks in '2 ranks on .* need' '1 rank on .* needs'; do
  refused "$ranks [0-9.]+ [GT]B, of it .* and it has [0-9.]+ GB" digits --batch $huge --synthetic-samples $huge
  expect_err 'fix: --batch [0-9]+ or less, or --accumulate [0-9]+ or more'
done
made synth digits --out many --samples 20000
for stage in '' '--stage local'; do # which is not begun either
  # shellcheck disable=SC2086  # words
  run bash -c 'ulimit -v 3000000 && exec "$@"' bash "$REDUCE_ALL" train digits --data many --batch 20000 --max-steps 1 \
    --run-dir none $stage
  expect_rc 2
  expect_one_error
  expect_err 'address space \(ulimit -v\) leaves [0-2]\.[0-9]+ GB'
done
[ ! -e local ] || fail "what does not fit was copied"
# A little more than the program needs to start, with the libraries that it is linked to.
kib=140000
until bash -c "ulimit -v $kib"' && exec "$@"' bash "$REDUCE_ALL" --version >/dev/null 2>&1; do
  kib=$((kib + 20000))
  [ "$kib" -lt 2000000 ] || fail "it never starts"
done
run bash -c "ulimit -v $((kib + 60000))"' && exec "$@"' bash "$REDUCE_ALL" train digits --synthetic --max-steps 1 --run-dir none
expect_rc 2
expect_one_error
expect_err 'an address space of [0-9]+ MB is less than .* \(the limit of this process \(ulimit -v\)\)'
[ ! -e none ] || fail "a folder of the run was left"

echo "all as it should be"
