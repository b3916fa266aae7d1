# No batch system: mpirun on this machine, or on those of a host file ($HOSTS, one line each: NAME slots=N), which are alike.
# Source it as `. generic-mpirun.sh`.
. "${BASH_SOURCE[0]%/*}/job.sh"
n_ranks=${RANKS:-2} n_nodes=1
[[ $n_ranks =~ ^[1-9][0-9]{0,6}$ ]] || give_up "RANKS=$n_ranks is not a number of ranks" "RANKS=4 $0"
if [[ ${HOSTS:-} ]]; then
  n_nodes=$(grep -c '^[^#[:space:]]' "$HOSTS" 2>/dev/null)
  ((n_nodes)) || give_up "HOSTS=$HOSTS names no hosts, or cannot be read" "a file with lines such as: node-a slots=4"
fi
# The cores that this shell may use; a core with two hardware threads counts once.
cores_here() {
  local n_cores n_usable
  n_cores=$(lscpu --parse=CORE | grep -v '^#' | sort -u | wc -l)
  n_usable=$(env -u OMP_NUM_THREADS nproc)
  echo $((n_cores <= n_usable ? n_cores : n_usable))
}
# Open MPI refuses more ranks than cores, unless one of these variables is set.
oversubscribes=${OMPI_MCA_rmaps_base_oversubscribe:-}${PRTE_MCA_rmaps_default_mapping_policy:-}
if [[ ! ${HOSTS:-} && ! $oversubscribes && $(mpirun --version 2>&1) == *'Open MPI'* ]]; then
  ((n_ranks <= $(cores_here))) || give_up "RANKS=$n_ranks is more than the $(cores_here) cores of this machine" \
    "RANKS=$(cores_here) $0, or HOSTS=FILE for several machines"
fi
local_disk=${TMPDIR:-/tmp}
load_modules() { :; }

# Divides the cores of a node (this machine is one) among its ranks, or gives each rank OMP_NUM_THREADS cores.
start_ranks() {
  local per_node=$(((n_ranks + n_nodes - 1) / n_nodes)) n_cores n_each binding=()
  n_cores=$(cores_here)
  n_each=${OMP_NUM_THREADS:-$((n_cores / per_node))}
  ((n_each * per_node > n_cores || n_each == 0)) || bind_by_mpirun "$n_each"
  exec mpirun -n "$n_ranks" "${binding[@]}" ${HOSTS:+--hostfile "$HOSTS" -x PATH -x LD_LIBRARY_PATH} "$@"
}
is_cancelled() { return 0; }
