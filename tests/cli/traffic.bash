#!/usr/bin/env bash
# The traffic of rank 0 during a reduce_all that times only MPI's own all-reduce. The number of calls does not grow with
# the ranks, Lockstep itself sends hardly a message, and bytes grow in proportion to the ranks. The more ranks share a
# processor, the more rarely they check whether MPI has started the others. share/doc/algorithms.md has the figures.
. "$(dirname "$0")/lib.bash"
export TRAFFIC_FILE=$folder/traffic
for n in 4 16 48; do
  run env LD_PRELOAD="$COUNT_TRAFFIC_LIBRARY" "$REDUCE_ALL" -b 8 -e 8 -n 8 -w 1 -c 1 --algorithm mpi --visits 0 --json "$folder/$n.json" \
    --nproc "$n"
  expect_rc 0
done
cat "$TRAFFIC_FILE"
# Some loops end by time, so numbers differ between runs. At 48 ranks, a table of 16 bytes for each pair would be 36 KB.
awk -v n_processors="$(getconf _NPROCESSORS_ONLN)" '
  { n_sharing = int(($1 - 1) / n_processors) }
  $6 != (n_sharing > 0 ? 100000 * n_sharing : 50000) { print "slack: " $6; bad = 1 }
  $2 < 50 || $2 > 1500 { print "calls: " $2; bad = 1 }
  $3 > 200 { print "messages: " $3; bad = 1 }
  $4 > 3000 + 400 * $1 { print "bytes: " $4; bad = 1 }
  END { exit bad || NR != 3 }' "$TRAFFIC_FILE" || fail "more than expected, see above"
for n in 4 16 48; do
  [ "$(wc -c <"$folder/$n.json")" -lt $((4000 + 200 * n)) ] || fail "a long result file at $n ranks"
done
