#!/usr/bin/env bash
# SIGTERM to one rank, or Ctrl-C at the launcher, during a run: files stay valid, and all ranks leave.
. "$(dirname "$0")/lib.bash"
command -v python3 >/dev/null || { echo "python3 is missing"; exit 77; }

mark_job

# start SEED: starts a run of 32,768 sizes in the background, too many to finish. Returns once a row is on disk: few samples, since
# ranks that share a core with others take turns for each of them.
start() {
  rm -f "$folder/r.json"
  (launch 2 -i 8 -e 256K -n 5 --algorithm ring --seed "$1" --json "$folder/r.json"; exit "$rc") &
  job=$!
  await has_line '"bytes"' "$folder/r.json"
}

expect_valid() {
  python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); assert r["results"] and not r["complete"]' \
    "$folder/r.json" || fail "the file is not valid"
}

start "$seed"
expect_valid
kill -TERM "$(ranks_with "$seed" | head -n 1)"
wait "$job" && fail "exit code 0 after SIGTERM"
await none_with "$seed"
expect_valid
expect_out '^# not complete: (terminated \(SIGTERM\)|.* a signal came)'  # the latter on a very busy machine
expect_out '^# Avg bus bandwidth    : '

seed=$((seed + 1))
start "$seed"
for pid in $(pids_with "$seed"); do
  if [ "$(readlink "/proc/$pid/exe")" != "$(readlink -f "$REDUCE_ALL")" ]; then kill -INT "$pid"; fi
done
wait "$job"
await none_with "$seed"
expect_valid

# During the thousand visits after the table.
seed=$((seed + 1))
rm -f "$folder/r.json"
(launch 2 -b 8 -e 8 -n 5 --algorithm ring --visits 1000 --seed "$seed" --json "$folder/r.json"; exit "$rc") &
job=$!
await has_line '^# for comparisons' "$folder/out"
kill -TERM "$(ranks_with "$seed" | head -n 1)"
wait "$job" && fail "exit code 0 after SIGTERM"
await none_with "$seed"
expect_valid
expect_out '^# not complete: (terminated \(SIGTERM\); there are fewer visits than requested|.* a signal came)'

# In the middle of a size: the samples of one size alone would take minutes.
seed=$((seed + 1))
(launch 2 -b 1M -e 1M -n 1000000 --algorithm shm --seed "$seed" --inject late:0:timing:1ms; exit "$rc") &
job=$!
await has_line 'injected: ' "$folder/err"
for pid in $(pids_with "$seed"); do
  if [ "$(readlink "/proc/$pid/exe")" != "$(readlink -f "$REDUCE_ALL")" ]; then kill -INT "$pid"; fi
done
wait "$job"
await none_with "$seed"
"$MPIEXEC" --version | grep -q 'Open MPI) 5' && exit 0  # Open MPI 5's launcher passes on nothing after its interrupt
expect_out '^# not complete: '
expect_out '^# Out of bounds values : '
expect_out '^# Avg bus bandwidth    : '

# A process that a shell starts for the program's output is its child, but not part of the job: it continues.
run bash -c 'exec "$0" -e 8 -n 2 --nproc 2 > >(cat >"$1/filtered"; sleep 4; echo whole >>"$1/filtered")' "$REDUCE_ALL" "$folder"
expect_rc 0
await has_line '^# Avg bus bandwidth' "$folder/filtered"
await has_line '^whole$' "$folder/filtered"
