#!/usr/bin/env bash
# job_scripts.bash SOURCE: the templates are clean: batch/check prints nothing but notes, and shellcheck nothing.
. "$(dirname "$0")/../cli/lib.bash"
cd "$1/batch" || exit 1
LOCKSTEP=$REDUCE_ALL run ./check ./*/*.sbatch ./*/*.pbs ./generic/*.sh
expect_rc 0
expect_out ': 0 errors, 0 warnings, '
[ "$(grep -c 'note: edit this line: .* is still CHANGE_ME' "$folder/out")" -ge 20 ] || fail "placeholders are not named"
# Each template for GPUs calls doctor first, which looks for them.
for script in ./*/*_gpu*; do grep -q 'lockstep doctor --expect-ranks "$n_ranks" --device cuda ' "$script" || fail "$script asks doctor for no GPUs"; done
# Each template that trains on several ranks has a line for the strategy.
for script in ./*/train*; do
  [[ $script != ./generic/* && $script == */train_gpu.* ]] || grep -q '^strategy=[a-z]' "$script" || fail "$script lets nobody choose a strategy"
done
# A copy in another folder is judged by its own site.
for script in ./*/*.sbatch ./*/*.pbs ./*/*.sh; do
  [[ $script == ./lib/* ]] || grep -qx "# lockstep: site=$(basename "$(dirname "$script")")" "$script" || fail "$script does not name its site"
done
# The requests for other GPUs, in comments of templates, have ranks, cores and GPUs that fit there.
n_variants=0
while IFS=: read -r file flags; do
  edits=()
  for word in $flags; do [[ $word != --* ]] || edits+=(-e "s|^#SBATCH ${word%%=*}=.*|#SBATCH ${word//&/\\&}|"); done
  sed "${edits[@]}" "$file" >"$folder/${file##*/}"
  LOCKSTEP=$REDUCE_ALL run ./check "$folder/${file##*/}"
  [ "$rc" -eq 0 ] || fail "$file $flags"
  n_variants=$((n_variants + 1))
done < <(grep -o '^# .*: *sbatch --.*' ./*/*_gpu*.sbatch | sed -E 's/:# .*: *sbatch /:/')
[ "$n_variants" -ge 15 ] || fail "$n_variants variants"
# Delta's modules for GPUs depend on partition and nodes: their order, and the network's plugin if there are several
# nodes. expect_delta PARTITION NODES MISSING WORDS: with a missing module MISSING.
expect_delta() {
  # shellcheck disable=SC2016  # for the shell that is started
  run env SLURM_JOB_NUM_NODES="$2" SLURM_NTASKS_PER_NODE=4 SLURM_JOB_ID=1 SLURM_JOB_PARTITION="$1" missing="$3" USER=me LOCKSTEP_ROOT=/ bash -c '
    module() { [[ $1 != load ]] || echo -n "$2 " && [[ $2 != "$missing" ]]; }
    . ./lib/delta.sh gpu && load_modules && echo "${NCCL_NET:-any} ${NCCL_P2P_LEVEL:-any}"'
  expect_rc 0
  [ "$(cat "$folder/out")" = "$4" ] || fail "expected: $4"
}
expect_delta gpuA100x4 2 none 'cray-hdf5-parallel cudatoolkit craype-accel-nvidia80 aws-ofi-nccl AWS Libfabric any'
expect_delta gpuA40x4-preempt 1 aws-ofi-nccl 'cray-hdf5-parallel cudatoolkit craype-accel-nvidia80 aws-ofi-nccl nccl any SYS'
expect_delta gpuH200x8 1 none 'cray-hdf5-parallel cudatoolkit craype-accel-nvidia90 aws-ofi-nccl any any'
type shellcheck >/dev/null 2>&1 || { echo "there is no shellcheck" && exit 77; }
# What a script gets from the files that it sources is unknown to shellcheck.
run shellcheck --severity=warning --shell=bash --exclude=SC1090,SC1091,SC2154,SC2034 ./*/*.sbatch ./*/*.pbs ./*/*.sh ./lib/resize ./lib/strategies ./check
expect_rc 0
