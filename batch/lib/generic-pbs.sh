# Any cluster with PBS and Open MPI: with what was loaded when the job was submitted (qsub -V, or loaded in your shell's start-up).
# Read as `. generic-pbs.sh`.
. "${BASH_SOURCE[0]%/*}/pbs.sh"
local_disk=${TMPDIR:-/tmp}
load_modules() { :; }

# An mpirun that does not know PBS would start all ranks on this node without a word, and one that reads the plain list of nodes
# takes each for as many ranks as it has cores: the list with counts says it. Nothing of the environment reaches other nodes but -x.
# OMP_NUM_THREADS is what the select line says of ompthreads.
start_ranks() {
  sort "$PBS_NODEFILE" | uniq -c | awk '{ print $2 " slots=" $1 }' >"$folder/hosts"
  bind_by_mpirun "${OMP_NUM_THREADS:-1}"
  exec mpirun -n "$n_ranks" --hostfile "$folder/hosts" "${binding[@]}" -x PATH -x LD_LIBRARY_PATH -x LOCKSTEP_ROOT "$@"
}
