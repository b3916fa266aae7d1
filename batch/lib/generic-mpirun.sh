# No batch system: mpirun on this machine, or on those of a file of hosts ($HOSTS, one line each: NAME slots=N).
n_ranks=${RANKS:-2} n_nodes=1
[[ ! ${HOSTS:-} ]] || n_nodes=$(grep -cv '^#' "$HOSTS")
. "${BASH_SOURCE[0]%/*}/job.sh"
local_disk=${TMPDIR:-/tmp}
load_modules() { :; }
start_ranks() { exec mpirun -n "$n_ranks" ${HOSTS:+--hostfile "$HOSTS" -x PATH -x LD_LIBRARY_PATH} "$@"; }
is_cancelled() { return 0; }
