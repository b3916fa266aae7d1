#!/usr/bin/env bash
# What passes rank 0 from the start of reduce_all to its end, where it times nothing but MPI's own all-reduce: a number of calls
# that does not grow with the ranks, hardly a message by itself, and bytes in proportion to the ranks; and that ranks look the
# more rarely whether MPI has started the more of them share a processor. share/doc/algorithms.md has the figures.
. "$(dirname "$0")/lib.bash"
export TRAFFIC_FILE=$folder/traffic
for n in 4 16 48; do
  run env LD_PRELOAD="$COUNT_TRAFFIC_LIBRARY" "$REDUCE_ALL" -b 8 -e 8 -n 8 -w 1 -c 1 --algorithm mpi --visits 0 --json "$folder/$n.json" \
    --nproc "$n"
  expect_rc 0
done
cat "$TRAFFIC_FILE"
# Some loops end by time, so numbers differ from run to run. At 48 ranks a table of 16 bytes for each pair would be 36 KB.
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
