# Helpers for tests that do something to a rank of `lockstep train`, on top of ../cli/lib.bash.
. "$(dirname "$0")/../cli/lib.bash"
run_dir=$folder/r
launcher=
# Ours alone: below the launcher that this test started, and of this program.
trap 'kill_ours; rm -rf "$folder"' EXIT

kill_ours() {
  # shellcheck disable=SC2046  # process ids of our own making
  [ -z "$(ranks_with "$run_dir")" ] || kill -KILL $(ranks_with "$run_dir")
}

has_rank() { [ -n "$(process_of "$1")" ]; }
has_logged() { has_line "$1" "$run_dir/log.jsonl"; }

# start nproc|launcher N ARGUMENTS...: the program on N ranks, in the background as $launcher.
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

# end: waits for the program, whose exit code is then $rc.
end() {
  rc=0
  wait "$launcher" || rc=$?
}

# find_ranks N: once all are there, as ${ranks[@]}: looking for them takes longer than some runs last.
find_ranks() {
  local rank
  ranks=()
  for ((rank = 0; rank < $1; ++rank)); do
    await has_rank "$rank"
    ranks+=("$(process_of "$rank")")
  done
}

# flip_bit RANK PARAMETER ORIGIN: of the run, in that rank's memory, while all wait.
flip_bit() {
  kill -STOP "${ranks[@]}"
  "$FLIP_BIT" "${ranks[$1]}" "$2" "$3" >"$folder/flipped" 2>&1
  flipped=$?
  kill -CONT "${ranks[@]}"
  [ "$flipped" -ne 77 ] || { cat "$folder/flipped" && exit 77; }
  [ "$flipped" -eq 0 ] || fail "no bit was flipped: $(cat "$folder/flipped")"
}

# keep_flipped RANK PARAMETER ORIGIN: where parameters stay as they are. A rank that had just read the parameter has written it
# back since; then the bit is flipped once more.
keep_flipped() {
  flip_bit "$@"
  while sleep 0.3 && "$FLIP_BIT" "${ranks[$1]}" "$2" "$3" >>"$folder/flipped" 2>&1; do :; done
}
