#!/usr/bin/env bash
# doctor on two nodes, which are namespaces of this machine. It reports a fault of one node with its name: a clock that
# is ahead, a folder that only one node sees, a name service and a file system that never answer. None delays it by a
# minute. Skipped if namespaces cannot be made, or with another MPI than Open MPI 4.
. "$(dirname "$0")/shard_lib.bash"
agent=$(cd "$(dirname "$0")/../support" && pwd)/node_of_its_own
"$agent" other true 2>/dev/null || { echo "no name spaces may be made here"; exit 77; }
case $("$MPIEXEC" --version 2>&1) in *'(OpenRTE) 4.'* | *'(Open MPI) 4.'*) ;; *) echo "not Open MPI 4" && exit 77 ;; esac

# on_nodes BAD ARGUMENTS...: runs doctor with a rank on each node. BAD is the fault of the second.
on_nodes() {
  local bad=$1
  shift
  local -a common=(--oversubscribe --mca plm rsh --mca plm_rsh_agent "$agent" --mca oob_tcp_if_include lo --mca btl_tcp_if_include lo)
  run "$MPIEXEC" "${common[@]}" -np 1 -H node-a "$REDUCE_ALL" doctor "$@" : \
    -np 1 -H node-b env BAD_NODE="$bad" LD_PRELOAD="$BAD_NODE_LIBRARY" "$REDUCE_ALL" doctor "$@"
}
expect_check() { expect_out "^$1 +$2 .*$3"; }

made synth digits --out "$folder/d" --samples 500
on_nodes '' --data "$folder/d" --checkpoints "$folder" --recipe mnist_cnn --expect-ranks 2
expect_rc 0
expect_check launcher ok '2 ranks on 2 nodes'
expect_check clocks ok 'within 1 s'
expect_check 'same folder' ok "all nodes see a file that rank 0 made"
expect_check 'read speed' ok 'slowest on node-[ab]'
expect_check 'host names' '(ok|warning)' ''
on_nodes clock
expect_rc 0
expect_check clocks warning '[0-9.]+ s ahead of rank 0.s on node-b; within 1 s on node-a'
# Each node has its own shared memory.
on_nodes '' --checkpoints /dev/shm
expect_rc 1
expect_check 'same folder' fail "a file that rank 0 makes in '/dev/shm' is not seen within 10 s on node-b"
on_nodes names
expect_rc 0
expect_check 'host names' warning 'the name service did not answer within 5 s on node-b'
begin=$SECONDS
on_nodes 'names files' --data "$folder/d" --checkpoints "$folder"
took=$((SECONDS - begin))
expect_rc 1
expect_check checkpoints fail "'$folder' did not answer within 10 s on node-b; writable, on .* on node-a"
expect_check data fail "'$folder/d' did not answer within 10 s on node-b"
expect_check 'temporary files' fail 'does not answer on node-b'
[ "$took" -lt 60 ] || [ "$(cut -d. -f1 /proc/loadavg)" -gt "$(nproc)" ] || fail "it took $took s"
[ "$(find "$folder" /dev/shm -maxdepth 1 -name '.lockstep-doctor-*' | wc -l)" -eq 0 ] || fail "left behind"
exit 0
