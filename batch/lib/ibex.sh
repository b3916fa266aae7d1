# KAUST Ibex: all facts that its scripts need. Source it as `. ibex.sh cpu` or `. ibex.sh gpu`.
# From docs.hpc.kaust.edu.sa (soft_env, systems/ibex, policy), July 2026. Not run there yet.
device=$1
mpi=pmix # tested below, because the site's pages contradict each other
. "${BASH_SOURCE[0]%/*}/slurm.sh"
local_disk=/tmp/$USER-$SLURM_JOB_ID # of each node
no_output_in=/home no_output_why='jobs that use it are killed' submit_from=/ibex/user/$USER

load_modules() {
  find_modules
  module purge
  # Exact names change: module avail openmpi. Of the stacks on GPU nodes, only that of CUDA 12.2 has both MPI and NCCL. Unverified: the name
  # of its openmpi, derived from the site's list and from openmpi/4.1.4/gnu11.2.1-cuda11.8, which was seen in jobs.
  if [[ $device == gpu ]]; then load cuda/12.2 openmpi/4.1.4/gnu11.2.1-cuda12.2 nccl/2.17.1-cuda12.2; else load openmpi; fi
}

# Uses srun if it supports PMIx, else mpirun, which finds the job's nodes itself.
start_ranks() {
  if srun --mpi=list 2>&1 | grep -w pmix >/dev/null; then
    start_ranks_by_srun "$@"
  else
    bind_by_mpirun "${SLURM_CPUS_PER_TASK:-1}"
    exec mpirun -n "$n_ranks" "${binding[@]}" "$@"
  fi
}

if [[ $device == gpu ]]; then
  export NCCL_SOCKET_IFNAME=ib0 # NCCL's bootstrap uses InfiniBand
fi
