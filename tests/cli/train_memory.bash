#!/usr/bin/env bash
# Compares the forecast of memory per rank with the real peak of each rank.
. "$(dirname "$0")/shard_lib.bash"
cd "$folder" || exit 1
command -v python3 >/dev/null || { echo "python3 is missing"; exit 77; }

# Starts a program and writes its peak, in MB, to its own file.
cat >peak.py <<'END'
import os, resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
with open(f"peak-{os.getpid()}", "w") as file:
    print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024e-6, file=file)
END

# expect_forecast N ARGUMENTS...: trains on N ranks, and expects that the largest peak is within 10 %, and none is above
# the forecast.
# shellcheck disable=SC2086  # the preflags are words
expect_forecast() {
  local n=$1 forecast
  shift
  local on_ranks=("$MPIEXEC" "$MPIEXEC_NUMPROC_FLAG" "$n" ${MPIEXEC_PREFLAGS:-})
  run "${on_ranks[@]}" "$REDUCE_ALL" train "$@" --dry-run --run-dir dry
  expect_rc 0
  [ ! -e dry ] || fail "--dry-run made a run directory"
  forecast=$(sed -n 's/^memory *\([0-9.]*\) MB.*/\1/p' "$folder/out")
  rm -f peak-*
  run "${on_ranks[@]}" python3 peak.py "$REDUCE_ALL" train "$@" --run-dir "wet$n-$1"
  expect_rc 0
  cat peak-* >peaks
  echo "$1 on $n: forecast $forecast MB, peaks $(tr '\n' ' ' <peaks)"
  awk -v f="$forecast" -v n="$n" '
    { most = $1 > most ? $1 : most }
    END { exit !(NR == n && f > 0.9 * most && f < 1.1 * most) }' peaks || fail "the forecast is $forecast MB"
}
expect_forecast 1 digits --synthetic-samples 640 --max-steps 5
expect_forecast 2 cifar_resnet18 --synthetic --synthetic-samples 64 --batch 32 --max-steps 2
