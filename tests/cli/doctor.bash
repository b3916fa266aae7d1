#!/usr/bin/env bash
# doctor: alone, with --nproc, under the launcher and under that of another MPI; what would fail is told with its fix and by the
# exit code, what differs between ranks by rank; the JSON says the same, and nothing is left behind.
. "$(dirname "$0")/shard_lib.bash"
schema=$(dirname "$0")/../../share/schemas/doctor-1.schema.json
is_open_mpi() { "$MPIEXEC" --version 2>&1 | grep -q 'Open MPI\|OpenRTE'; }

# expect_check NAME VERDICT [SEEN]: the line of that check.
expect_check() { expect_out "^$1 +$2 .*${3:-}"; }
# expect_no_failure: nothing would fail, and the last line says so.
expect_no_failure() {
  expect_rc 0
  expect_out '^[0-9]+ checks: .* 0 would fail, [0-9]+ not checked$'
}
# json_says RANKS NAME=VERDICT...: $folder/j.json does, and is as its schema has it. Nothing is looked at without Python.
json_says() {
  command -v python3 >/dev/null || return 0
  python3 - "$folder/j.json" "$schema" "$@" <<'PY' || fail "not the JSON it should be: $*"
import json, sys
document = json.load(open(sys.argv[1]))
ranks, wanted = int(sys.argv[3]), dict(word.split("=") for word in sys.argv[4:])
checks = {check["name"]: check["verdict"] for check in document["checks"]}
assert document["meta"]["ranks"] == ranks, document["meta"]
assert document["would_fail"] == ("fail" in checks.values()), checks
assert sum(document["counts"].values()) == len(document["checks"]) == len(checks), document["counts"]
for name, verdict in wanted.items():
    assert checks[name] == verdict, (name, checks[name])
try:
    import jsonschema
except ImportError:
    sys.exit()
jsonschema.validate(document, json.load(open(sys.argv[2])))
PY
}

# The page of all checks knows each of them.
run "$REDUCE_ALL" doctor --json "$folder/j.json"
page=$(dirname "$0")/../../share/doc/doctor.md
names=$(sed -n 's/.*"name": "\([^"]*\)".*/\1/p' "$folder/j.json")
[ "$(wc -l <<<"$names")" -gt 25 ] || fail "which checks are there? $names"
while read -r name; do grep -q "^|.*\`$name\`" "$page" || fail "$page does not know '$name'"; done <<<"$names"

made synth digits --out "$folder/d" --samples 2000
made synth images --out "$folder/other" --samples 200 --classes 4
mkdir "$folder/runs"
usual=(--data "$folder/d" --val "$folder/d" --checkpoints "$folder/runs/new" --recipe mnist_cnn --n-checkpoints 3)

# Alone: no launcher, and nothing else is wrong.
run "$REDUCE_ALL" doctor --json "$folder/j.json"
expect_no_failure
expect_check launcher ok 'no launcher, 1 rank on 1 node'
expect_check data skipped 'not checked: --data SET is not given'
json_says 1 launcher=ok data=skipped
run "$REDUCE_ALL" doctor "${usual[@]}"
expect_no_failure
for check in recipe data 'read speed' classes checkpoints 'file locks' room; do expect_check "$check" ok; done
[ -z "$(ls -A "$folder/runs")" ] || fail "left behind: $(ls -A "$folder/runs")"

# With ranks of its own, and under a launcher.
run "$REDUCE_ALL" doctor --nproc 2 --expect-ranks 2 "${usual[@]}" --json -
expect_rc 0
cp "$folder/out" "$folder/j.json"
json_says 2 launcher=ok recipe=ok room=ok 'same program=ok'
launch 3 doctor --expect-ranks 3 "${usual[@]}"
expect_no_failure
expect_check launcher ok '3 ranks on 1 node'
expect_check pmi ok
launch 3 doctor --expect-ranks 4
expect_rc 1
expect_check launcher fail '3 ranks on 1 node instead of the 4 of --expect-ranks'
expect_out '^ +fix: use the launcher of the MPI'
expect_out ' 1 would fail,'
launch 2 doctor --expect-ranks 3 --json "$folder/j.json"
expect_rc 1
json_says 2 launcher=fail

# What the batch system was asked for.
run env SLURM_NTASKS=5 "$REDUCE_ALL" doctor
expect_check launcher note 'no launcher, so 1 rank; Slurm was asked for 5 tasks'
printf 'a\na\nb\n' >"$folder/nodes"
run env PBS_NODEFILE="$folder/nodes" "$REDUCE_ALL" doctor
expect_check launcher note 'PBS_NODEFILE has 3 lines'

# What differs between ranks: a variable, and the file that runs.
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

# Slips in the environment.
run env NCCL_IB_DISABEL=1 "$REDUCE_ALL" doctor
expect_check environment warning NCCL_IB_DISABEL
expect_out '^ +fix: .*NCCL_IB_DISABLE'

run env TMPDIR="$folder/gone" "$REDUCE_ALL" doctor
expect_check 'temporary files' warning "TMPDIR is '$folder/gone', which is not there"
[ ! -e "$folder/gone" ] || fail "TMPDIR was made"

# A value that keeps MPI from starting is told before MPI ends it, once.
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
  expect_check launcher fail 'Hydra mpiexec started 2 processes, but each of them is alone: this program is built with Open MPI'
  expect_check pmi fail 'the launcher offers PMI, which Open MPI .* has not taken'
  [ "$(grep -c '^launcher ' "$folder/out")" -eq 1 ] || fail "not one report"
  break
done

# Sets that are not there, are cut short, have other classes; folders that nothing can be written to.
run "$REDUCE_ALL" doctor --data "$folder/nosuch" --checkpoints /proc/nosuch --json "$folder/j.json"
expect_rc 1
expect_check data fail "cannot read '$folder/nosuch/manifest.json'"
expect_out '^ +fix: check the name for slips'
expect_check checkpoints fail "nothing can be written in '/proc'"
expect_out '^ +fix: name a folder on a file system that all nodes may write to'
json_says 1 data=fail checkpoints=fail 'file locks=skipped'
run "$REDUCE_ALL" doctor --data "$folder/d" --val "$folder/other"
expect_rc 1
expect_check classes fail '10 classes in --data, 4 in --val'
cp -r "$folder/d" "$folder/cut"
shards=("$folder"/cut/*.h5)
truncate -s -1 "${shards[0]}"
run "$REDUCE_ALL" doctor --data "$folder/cut"
expect_rc 1
expect_check data fail "${shards[0]}"
mkfifo "$folder/pipe"
mkdir "$folder/hung" && mv "$folder/pipe" "$folder/hung/manifest.json"
run "$REDUCE_ALL" doctor --data "$folder/hung"
expect_rc 1
expect_check data fail 'it is no regular file'

# A recipe that the ranks cannot share, or for which there is no room.
launch 3 doctor --data "$folder/d" --recipe mnist_cnn --checkpoints "$folder" --n-checkpoints 1000000
expect_rc 1
expect_check room fail 'needed for 1000000 checkpoints'
printf '# Of four lanes.\nmodel = "mnist_cnn"\ndeterministic = true\nlanes = 4\n' >"$folder/r.toml"
launch 3 doctor --data "$folder/d" --recipe "$folder/r.toml"
expect_rc 1
expect_check recipe fail

# GPUs that a job would compute on, where there are none.
[ -e /dev/nvidiactl ] || {
  launch 2 doctor --device cuda
  expect_rc 1
  expect_check gpus fail '(no NVIDIA driver|built without CUDA)'
  launch 2 doctor --device host
  expect_check gpus skipped 'the job computes on the host'
}

# Usage.
for words in '--device gpu' '--expect-ranks 0' '--recipe nosuch' '--n-checkpoints x' '--nosuch' 'word' '--recipe mnist_cnn' \
  '--val d' '--n-checkpoints 5' '--n-checkpoints 5 --checkpoints .' '--n-checkpoints 5 --recipe toy'; do
  # shellcheck disable=SC2086  # words
  run "$REDUCE_ALL" doctor $words
  expect_rc 2
  expect_one_error
done
run "$REDUCE_ALL" doctor --json "$folder/no/j.json"
expect_rc 2
expect_one_error
run_full "$REDUCE_ALL" doctor
expect_full
exit 0
