#!/usr/bin/env bash
# recipe.bash RECIPE [SET...]: runs two steps of a recipe's model under the named instruction sets (DEFAULT: the
# processor's choice), or under every set that the processor has and that can be forced, for oneDNN and our own loops
# alike. By oneDNN's log, no layer may run an implementation that it calls a reference. The losses of all sets must
# agree. Each set runs float32 and bfloat16, on one rank, and deterministic on two.
set -u
recipe=$1
sets=${*:2}
[ "$(uname -m)" = x86_64 ] || { echo "no x86 processor: its instruction sets cannot be forced"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
n_failed=0

fail() {
  echo "FAILED: $*"
  n_failed=$((n_failed + 1))
}

# Few samples and small images make steps short. One recipe keeps its images' size, on which oneDNN's choice also
# depends, but runs only on two ranks, with one sample each. Losses may differ by these shares. Rounding loses 2^-24 of
# each product and 2^-9 of each value in bfloat16; the 50 layers of an untrained network multiply that.
ways=("--nproc 1" "--nproc 2 --deterministic")
rate=0.1 share_f32=1e-5 share_bf16=0.01
case $recipe in
  cifar_resnet18) size=(--image-size 32 --batch 8 --bn-group 4) ;;
  resnet50_synthetic) size=(--image-size 64 --batch 8 --bn-group 4 --classes 10) ;;
  tinyimagenet_resnet50)
    size=(--image-size 224 --batch 2 --bn-group 1)
    ways=("--nproc 2")
    ;;
  *) size=(--batch 8) ;;
esac
case $recipe in
  movielens) rate=0.01 ;;
  *resnet18*) rate=1e-3 ;;
  *resnet50*) rate=1e-5 share_f32=0.003 share_bf16=0.1 ;;
esac

# train SET WORDS...: sets $loss to the loss of two steps; $folder/out has the logs of oneDNN and Lockstep.
train() {
  rm -rf run
  loss=
  ONEDNN_MAX_CPU_ISA=$1 ONEDNN_VERBOSE=1 "$LOCKSTEP" train "$recipe" --synthetic --synthetic-steps 2 --max-steps 2 \
    "${size[@]}" --lanes 2 --lr $rate --val-split '' --threads 1 --run-dir run "${@:2}" >out 2>err ||
    { fail "$*: exit code $?: $(grep -m 1 'error: ' err || tail -n 1 err)"; return 1; }
  loss=$(grep -o '"loss": *[^,]*' run/log.jsonl | tail -n 1 | sed 's/.*: *//')
}

# The log's lines are onednn_verbose,exec,cpu,KIND,IMPLEMENTATION,PASS,... with a version and "primitive" before exec in
# oneDNN 3. Reorders that happen once, before the first step, may use any implementation.
executed() { sed -nE 's/^onednn_verbose,(.*,)?exec,cpu,([^,]*),([^,]*),([^,]*),.*/\2 \3 \4/p' out; }

expect_no_reference() {
  executed >executed
  [ -s executed ] || fail "$*: oneDNN's log names nothing that was executed"
  local found
  found=$(grep -E ' ([^ ]*[:_])?ref([:_]|$| )' executed | sort | uniq -c | sed -E 's/^ +/  /')
  [ -z "$found" ] || fail "$*: reference implementations (times executed, kind, implementation, pass)"$'\n'"$found"
}

# expect_near A B SHARE: compares two losses.
expect_near() {
  awk -v a="$1" -v b="$2" -v share="$3" 'BEGIN { d = a - b; exit !(d <= share * b && -d <= share * b) }' </dev/null
}

widest_of_run() { sed -nE 's/.*"instruction_set": *"([a-z0-9]*)".*/\1/p' run/run.json; }

# find_sets: sets $sets to those of this processor, up to a limit from outside.
find_sets() {
  local limit=${ONEDNN_MAX_CPU_ISA:-DEFAULT}
  train "$limit" || exit 1
  case $(widest_of_run) in
    avx512) sets="SSE41 AVX2 AVX512_CORE" ;;
    avx2) sets="SSE41 AVX2"; echo "without AVX512_CORE: this processor has none, or ONEDNN_MAX_CPU_ISA=$limit" ;;
    *) sets="SSE41"; echo "without AVX512_CORE and AVX2: this processor has none, or ONEDNN_MAX_CPU_ISA=$limit" ;;
  esac
  case " $sets " in *" $limit "*) ;; *) sets="$sets $limit" ;; esac
}

[ -n "$sets" ] || find_sets
for precision in f32 bf16; do
  share=share_$precision
  first=
  for set in $sets; do
    for words in "${ways[@]}"; do
      # shellcheck disable=SC2086  # words are words
      train "$set" --precision $precision $words || continue
      expect_no_reference "$set, $precision, $words"
      echo "$set, $precision, $words: a loss of $loss"
      first=${first:-$loss}
      expect_near "$loss" "$first" "${!share}" || fail "$set, $precision, $words: a loss of $loss, not $first"
    done
  done
done
[ $n_failed -eq 0 ]
