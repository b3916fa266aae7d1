#!/usr/bin/env bash
# stays.bash: a launcher that stays although its ranks have ended is ended, with a message, whether the ranks have
# failed or not. It starts them by hand, so each runs as a single rank.
. "$(dirname "$0")/../cli/lib.bash"
mkfifo "$folder/never"
cat >"$folder/mpirun" <<'SCRIPT'
#!/bin/bash
n=$1
shift
for ((i = 0; i < n; ++i)); do
  OMPI_COMM_WORLD_RANK=$i OMPI_COMM_WORLD_SIZE=$n OMPI_COMM_WORLD_LOCAL_RANK=$i OMPI_COMM_WORLD_LOCAL_SIZE=$n "$@" &
done
wait
echo "all $n have ended"
read -r <>"$(dirname "$0")/never"
SCRIPT
chmod +x "$folder/mpirun"

# expect_ended: expects that SIGTERM ended it, once all its ranks had ended.
expect_ended() {
  expect_rc 143
  expect_out "^all $1 have ended"
  expect_err 'error: the MPI launcher \(mpirun, pid [0-9]+\) has kept running without ranks for 15 s: it is killed'
}

run "$folder/mpirun" 1 "$REDUCE_ALL" -e 64 -n 2
expect_ended 1
expect_out '^# Avg bus bandwidth'
run "$folder/mpirun" 2 "$REDUCE_ALL" -e 64 -n 2
expect_ended 2
expect_err 'each runs as a single rank'
