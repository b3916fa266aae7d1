# Helpers for tests of the command line. The test's environment names the program and the launcher: REDUCE_ALL, MPIEXEC,
# MPIEXEC_NUMPROC_FLAG and MPIEXEC_PREFLAGS (words, may be empty).
set -u
await_limit_s=120 await_pause_s=0.05
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
rc=0

# run COMMAND...: puts its output into $folder/out and $folder/err, its exit code into $rc.
run() {
  rc=0
  command_line="$*"
  "$@" >"$folder/out" 2>"$folder/err" || rc=$?
}

# launch N ARGUMENTS...: runs the program on N ranks under the launcher. Repeats that once if the launcher itself
# crashes, which says nothing about the program: mpirun of Open MPI 4.1.4 sometimes does so when a rank calls MPI_Abort.
launch() {
  local n=$1
  shift
  # shellcheck disable=SC2086  # the preflags are words
  set -- "$MPIEXEC" "$MPIEXEC_NUMPROC_FLAG" "$n" ${MPIEXEC_PREFLAGS:-} "$REDUCE_ALL" "$@"
  run "$@"
  if { [ "$rc" -eq 134 ] || [ "$rc" -eq 139 ]; } && ! grep -qE 'exited on signal|BAD TERMINATION' "$folder/err"; then
    echo "the launcher crashed; once more: $*"
    run "$@"
  fi
}

# run_full COMMAND...: does the same with a full stdout.
run_full() {
  run bash -c '"$@" >/dev/full' bash "$@"
}

# expect_full: expects that the full stdout is reported once, with exit code 3.
expect_full() {
  expect_rc 3
  expect_one_error
  expect_err 'cannot write to stdout: No space left'
  expect_err 'fix: '
  grep -q MPI_ABORT "$folder/err" && fail "aborted"
  return 0
}

fail() {
  echo "FAILED: $*"
  echo "command: ${command_line:-}"
  echo "exit code: $rc"
  echo "--- stdout" && cat "$folder/out"
  echo "--- stderr" && cat "$folder/err"
  exit 1
}

# await COMMAND...: waits until it succeeds. The limit is for hangs: a slow or busy machine may take a while.
await() {
  local begin=$SECONDS
  until "$@"; do
    [ $((SECONDS - begin)) -lt "$await_limit_s" ] || fail "waited $await_limit_s s for: $*"
    sleep "$await_pause_s"
  done
}

expect_rc() { [ "$rc" -eq "$1" ] || fail "expected exit code $1"; }
# expect_rc_of_job CODE: checks the exit code of a job in which a rank is killed or leaves. MPICH's launcher may instead
# report that it killed the others (9), or that they got SIGHUP (1). It may also lose its own proxy (255).
expect_rc_of_job() {
  if [ "$rc" -eq 9 ] || [ "$rc" -eq 1 ]; then
    grep -q 'BAD TERMINATION' "$folder/out" && return
  elif [ "$rc" -eq 255 ]; then
    grep -q '^\[proxy:' "$folder/err" && return
  fi
  expect_rc "$1"
}
expect_out() { grep -qE -e "$1" "$folder/out" || fail "stdout lacks /$1/"; }
expect_err() { grep -qE -e "$1" "$folder/err" || fail "stderr lacks /$1/"; }
# Expects one message, from one rank, whatever the launcher adds.
expect_one_error() { [ "$(grep -c 'error: ' "$folder/err")" -eq 1 ] || fail "expected one message"; }

# pids_with WORD: prints the processes that have it as an argument.
pids_with() {
  local file
  for file in /proc/[0-9]*/cmdline; do
    if tr '\0' '\n' 2>/dev/null <"$file" | grep -qxF -e "$1"; then
      file=${file%/cmdline}
      echo "${file#/proc/}"
    fi
  done
}

# ranks_with WORD: prints those of them that are ranks, without their launcher.
ranks_with() {
  local pid
  for pid in $(pids_with "$1"); do
    if [ "$(readlink "/proc/$pid/exe")" = "$(readlink -f "$REDUCE_ALL")" ]; then echo "$pid"; fi
  done
}

# mark_job: draws $seed, an argument that marks the processes of this test. They end with the test.
mark_job() {
  seed=$((RANDOM * 32768 + RANDOM + 1))
  # shellcheck disable=SC2046  # process ids of our own making
  trap 'kill -KILL $(pids_with "$seed") 2>/dev/null; rm -rf "$folder"' EXIT
}

# none_with WORD: returns whether no rank with it is left.
none_with() { [ -z "$(ranks_with "$1")" ]; }

# has_line PATTERN FILE: returns whether FILE exists and has such a line.
has_line() { grep -qs -e "$1" "$2"; }

# parent_of PID prints the parent. has_ended PID returns whether the process has ended, or only waits to be collected.
parent_of() { sed -n 's/^PPid:[[:space:]]*//p' "/proc/$1/status"; }
has_ended() { ! grep -q '^State:[[:space:]]*[^Z[:space:]]' "/proc/$1/status" 2>/dev/null; }

# process_of RANK: prints the process that computes as that rank of the job in $run_dir. It is a child of its guard, and
# has another name once both exist.
process_of() {
  local pid parent
  for pid in $(ranks_with "$run_dir"); do
    parent=$(sed -n 's/^PPid:[[:space:]]*//p' "/proc/$pid/status" 2>/dev/null)
    [ "$(cat "/proc/$parent/comm" 2>/dev/null)" = lockstep-guard ] || continue
    tr '\0' '\n' 2>/dev/null <"/proc/$pid/environ" | grep -qxE "(OMPI_COMM_WORLD_RANK|PMI_RANK)=$1" && echo "$pid"
  done
}
