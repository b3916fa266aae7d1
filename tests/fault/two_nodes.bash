# Two nodes, node-a and node-b, which are namespaces of this machine, on top of ranks.bash.
node_agent=$(cd "$(dirname "${BASH_SOURCE[0]}")/../support" && pwd)/node_of_its_own

# why_no_nodes: prints why there are none here; nothing if there are.
why_no_nodes() {
  if ! "$node_agent" other true 2>/dev/null; then
    echo "no name spaces may be made here"
  else
    case $("$MPIEXEC" --version 2>&1) in *'(OpenRTE) 4.'* | *'(Open MPI) 4.'*) ;; *) echo "not Open MPI 4" ;; esac
  fi
}

# on_nodes N ARGUMENTS...: starts the program on N ranks, half of them on each node, in the background as $launcher.
on_nodes() {
  local n=$1
  shift
  command_line="$*"
  "$MPIEXEC" -np "$n" --oversubscribe --mca plm rsh --mca plm_rsh_agent "$node_agent" -H "node-a:$((n / 2)),node-b:$((n / 2))" \
    --mca oob_tcp_if_include lo --mca btl_tcp_if_include lo "$REDUCE_ALL" "$@" >"$folder/out" 2>"$folder/err" &
  launcher=$!
}
