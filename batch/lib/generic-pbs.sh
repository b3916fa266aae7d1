# Any cluster with PBS and Open MPI, with the modules that were loaded when the job was submitted (qsub -V, or your shell's start-up).
# Source it as `. generic-pbs.sh`.
. "${BASH_SOURCE[0]%/*}/pbs.sh"
local_disk=${TMPDIR:-/tmp}
load_modules() { :; }

# An mpirun built without PBS would silently start all ranks on this node. One that reads the plain list of nodes would start as many
# ranks on each as it has cores. So the host file has counts. Only variables with -x reach other nodes. OMP_NUM_THREADS is the
# ompthreads of the select line.
start_ranks() {
  sort "$PBS_NODEFILE" | uniq -c | awk '{ print $2 " slots=" $1 }' >"$folder/hosts"
  bind_by_mpirun "${OMP_NUM_THREADS:-1}"
  exec mpirun -n "$n_ranks" --hostfile "$folder/hosts" "${binding[@]}" -x PATH -x LD_LIBRARY_PATH -x LOCKSTEP_ROOT "$@"
}
