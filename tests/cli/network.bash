#!/usr/bin/env bash
# A program that runs alone cannot be reached over the network. (Under a launcher, MPI may listen.)
. "$(dirname "$0")/lib.bash"
[ -r /proc/net/tcp ] || { echo "no /proc/net/tcp"; exit 77; }
mark_job

# listeners PID: prints the addresses on which that process listens, in the kernel's hexadecimal.
listeners() {
  local sockets
  sockets=$(readlink "/proc/$1/fd/"* 2>/dev/null | sed -n 's/^socket:\[\(.*\)\]$/\1/p')
  awk -v list="$sockets" 'BEGIN { n = split(list, a, "\n"); for (i = 1; i <= n; ++i) mine[a[i]] = 1 }
    $4 == "0A" && $10 in mine { sub(":.*", "", $2); print $2 }' /proc/net/tcp /proc/net/tcp6 2>/dev/null
}

"$REDUCE_ALL" -b 1M -e 1M -n 1000000 --algorithm mpi --seed "$seed" >"$folder/out" 2>"$folder/err" &
job=$!
await has_line '^# *(B)' "$folder/out"
n=0
for pid in $(ranks_with "$seed"); do
  n=$((n + 1))
  [ -z "$(listeners "$pid")" ] || fail "process $pid listens on $(listeners "$pid")"
done
[ "$n" -eq 2 ] || fail "$n processes instead of a rank and its guard"
# shellcheck disable=SC2046
kill -KILL $(pids_with "$seed") 2>/dev/null
wait "$job"
exit 0
