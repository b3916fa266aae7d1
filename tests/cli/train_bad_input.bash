#!/usr/bin/env bash
# Input that cannot be trained on is refused with one message and exit code 2, also with --nproc. tests/program has what
# is refused.
schemas=$(cd "$(dirname "$0")/../../share/schemas" && pwd)
. "$(dirname "$0")/lib.bash"
cd "$folder" || exit 1

for nproc in '' '--nproc 3'; do
  # shellcheck disable=SC2086  # words
  run "$REDUCE_ALL" train mnist_cnn --data nowhere $nproc
  expect_rc 2
  expect_one_error
  expect_err nowhere
done
run "$REDUCE_ALL" train toy --batch 2 --nproc 3
expect_rc 2
expect_one_error
expect_err 'at least a sample for each rank'
ONEDNN_MAX_CPU_ISA=AVX22 run "$REDUCE_ALL" train toy --nproc 2
expect_rc 2
expect_one_error
expect_err "did you mean 'AVX2'"
[ "$(ls -A)" = $'err\nout' ] || fail "something was left behind: $(ls -A)"

# Another number of ranks than the launcher has started is refused; the same number is not.
launch 2 train toy --nproc 3
expect_rc 2
expect_one_error
expect_err 'started 2 ranks already'
launch 2 train toy 1 --nproc 2 --dry-run
expect_rc 0

# Ranks that read different recipes, as nodes may. A shell distinguishes them by the launcher's variables (Open MPI,
# MPICH): mpiexec of Debian 13's Open MPI 5.0.7 crashes with two commands.
# shellcheck disable=SC2016,SC2086  # expanded by that shell; the preflags are words
run "$MPIEXEC" "$MPIEXEC_NUMPROC_FLAG" 2 ${MPIEXEC_PREFLAGS:-} \
  bash -c 'exec "$0" train toy --lr 0.$((1 + ${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${SLURM_PROCID:-0}}}))' "$REDUCE_ALL"
expect_rc 2
expect_one_error
expect_err 'same recipe and flags on all ranks'

# A loss that is no longer a number is named, with exit code 1, and its step can be repeated. tests/program has the
# messages.
run "$REDUCE_ALL" train toy --lr 1e30 --save-every '32 samples' --run-dir nan --nproc 2
expect_rc 1
expect_one_error
expect_err 'the loss of step 3 is not finite'
expect_err 'first in [a-z]'
run "$REDUCE_ALL" train --replay nan/bad-step-000000003
expect_rc 0
expect_out '^verdict   not finite here either$'
if python3 -c 'import jsonschema' 2>/dev/null; then
  python3 - "$schemas/checkpoint-1.schema.json" nan/bad-step-000000003 nan/checkpoints/step-000000001 <<'PY' || fail "not the JSON it should be"
import json, sys, jsonschema
for path in sys.argv[2:]:
    index = json.load(open(path + '/index.json'))
    assert ('bad_step' in index['content']) == ('bad' in path)
    jsonschema.validate(index, json.load(open(sys.argv[1])))
PY
fi

# In a shared folder, another user may have put a link in the place of a temporary file. The shell becomes the program,
# so its process id is known.
mkdir tmp
echo "another's" >victim
run env TMPDIR="$PWD/tmp" bash -c 'ln -s "$PWD/victim" "$TMPDIR/lockstep-dry-run-$$.h5" && exec "$0" train toy --dry-run' \
  "$REDUCE_ALL"
expect_rc 0
[ "$(cat victim)" = "another's" ] || fail "a file was replaced through a link"
[ -z "$(find tmp -name 'lockstep*' -type d)" ] || fail "--dry-run left something behind"

echo "all as it should be"
