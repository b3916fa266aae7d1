#!/usr/bin/env bash
# doctor: alone, with --nproc, under the launcher and under that of another MPI. It reports differences between ranks by
# rank, and its JSON follows the schema. tests/program has the other checks and what is refused.
. "$(dirname "$0")/lib.bash"
schema=$(dirname "$0")/../../share/schemas/doctor-1.schema.json
is_open_mpi() { "$MPIEXEC" --version 2>&1 | grep -q 'Open MPI\|OpenRTE'; }

# expect_check NAME VERDICT [SEEN]: expects the line of that check.
expect_check() { expect_out "^$1 +$2 .*${3:-}"; }
# expect_no_failure: expects that nothing would fail, and that the last line says so.
expect_no_failure() {
  expect_rc 0
  expect_out '^[0-9]+ checks: .* 0 would fail, [0-9]+ not checked$'
}

run "$REDUCE_ALL" doctor
expect_no_failure
expect_check launcher ok 'no launcher, 1 rank on 1 node'
run "$REDUCE_ALL" doctor --nproc 2 --expect-ranks 2 --json -
expect_rc 0
if python3 -c 'import jsonschema' 2>/dev/null; then
  python3 - "$folder/out" "$schema" <<'PY' || fail "not the JSON it should be"
import json, jsonschema, sys
document = json.load(open(sys.argv[1]))
jsonschema.validate(document, json.load(open(sys.argv[2])))
assert document["meta"]["ranks"] == 2, document["meta"]
PY
fi
launch 3 doctor --expect-ranks 4
expect_rc 1
expect_check pmi ok
expect_check launcher fail '3 ranks on 1 node instead of the 4 of --expect-ranks'
expect_out '^ +fix: use the launcher of the MPI'
expect_out ' 1 would fail,'
run "$REDUCE_ALL" doctor --device gpu
expect_rc 2
expect_one_error

# Differences between ranks: a variable, and the program file.
if is_open_mpi; then
  # shellcheck disable=SC2086  # the preflags are words
  run "$MPIEXEC" ${MPIEXEC_PREFLAGS:-} -np 2 "$REDUCE_ALL" doctor : -np 1 env NCCL_DEBUG=INFO "$REDUCE_ALL" doctor
  expect_no_failure
  expect_check 'same variables' warning 'NCCL_DEBUG: not set on rank 0 .*, rank 1 .*; .INFO. on rank 2'
  { cat "$REDUCE_ALL" && echo; } >"$folder/lockstep"
  chmod +x "$folder/lockstep"
  # shellcheck disable=SC2086
  run "$MPIEXEC" ${MPIEXEC_PREFLAGS:-} -np 1 "$REDUCE_ALL" doctor : -np 1 "$folder/lockstep" doctor
  expect_rc 1
  expect_check 'same program' fail 'digest .* on rank 0 .*; .*digest .* on rank 1'
  rm "$folder/lockstep"
fi

run env TMPDIR="$folder/gone" "$REDUCE_ALL" doctor
expect_check 'temporary files' warning "TMPDIR is '$folder/gone', which does not exist"
[ ! -e "$folder/gone" ] || fail "TMPDIR was made"

# A value that keeps MPI from starting is reported once, before MPI ends the process.
if is_open_mpi; then
  OMPI_MCA_btl=tpc launch 2 doctor
  expect_err '^error: OMPI_MCA_btl=tpc: no such value'
  [ "$(grep -c '^error: OMPI_MCA_btl=tpc' "$folder/err")" -eq 1 ] || fail "not told once"
  OMPI_MCA_btl=tpc run "$REDUCE_ALL" doctor --nproc 2
  expect_rc 3
  run "$REDUCE_ALL" doctor --help
  expect_out ' 3 the system or MPI failed'
fi

# The launcher of another MPI: one report of N processes that are alone.
for other in mpiexec.mpich mpiexec.hydra; do
  is_open_mpi && "$other" --version 2>/dev/null | grep -q HYDRA || continue
  run "$other" -n 2 "$REDUCE_ALL" doctor
  expect_rc 1
  expect_check launcher fail 'Hydra mpiexec started 2 processes, but each runs as a single rank: this program is built with Open MPI'
  expect_check pmi fail 'the launcher offers PMI, but Open MPI .* does not use it'
  [ "$(grep -c '^launcher ' "$folder/out")" -eq 1 ] || fail "not one report"
  break
done
