# NCSA Delta: what its scripts need to know, in one place. Read as `. delta.sh cpu` or `. delta.sh gpu`.
# From docs.ncsa.illinois.edu/systems/delta (running_jobs, architecture, rh9 prog_env), 2025 and 2026. Not run there yet.
device=$1
mpi='' # cray-mpich under the site's own srun; there is no mpirun
. "${BASH_SOURCE[0]%/*}/slurm.sh"
local_disk=/tmp/$USER-$SLURM_JOB_ID # of each node, 1.5 TB, emptied when the job ends

load_modules() {
  find_modules
  module reset # the site's defaults: PrgEnv-gnu with cray-mpich
  load cray-hdf5-parallel
  [[ $device == cpu ]] || load cudatoolkit craype-accel-nvidia80
}

if [[ $device == gpu ]]; then
  export MPICH_GPU_SUPPORT_ENABLED=1 # MPI on memory of GPUs
  export NCCL_SOCKET_IFNAME=hsn      # the name service of NCCL over Slingshot, not over the management network
  export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET # says which network it uses: it falls back to sockets without a word
fi
