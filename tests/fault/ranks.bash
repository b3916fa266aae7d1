# Helpers for tests that do something to a rank of `lockstep train`, on top of ../cli/lib.bash.
. "$(dirname "$0")/../cli/lib.bash"
run_dir=$folder/r
launcher=
# Prints only ranks of this test: processes of this program below the launcher that the test started.
trap 'kill_ours; rm -rf "$folder"' EXIT

kill_ours() {
  # shellcheck disable=SC2046  # process ids of our own making
  [ -z "$(ranks_with "$run_dir")" ] || kill -KILL $(ranks_with "$run_dir")
}

has_rank() { [ -n "$(process_of "$1")" ]; }
has_logged() { has_line "$1" "$run_dir/log.jsonl"; }

# start nproc|launcher N ARGUMENTS...: starts the program on N ranks, in the background as $launcher.
# shellcheck disable=SC2086  # the preflags are words
start() {
  local how=$1 n=$2
  shift 2
  command_line="$*"
  if [ "$how" = nproc ]; then
    "$REDUCE_ALL" "$@" --nproc "$n" >"$folder/out" 2>"$folder/err" &
  else
    "$MPIEXEC" "$MPIEXEC_NUMPROC_FLAG" "$n" ${MPIEXEC_PREFLAGS:-} "$REDUCE_ALL" "$@" >"$folder/out" 2>"$folder/err" &
  fi
  launcher=$!
}

# end: waits for the program, and sets $rc to its exit code.
end() {
  rc=0
  wait "$launcher" || rc=$?
}
