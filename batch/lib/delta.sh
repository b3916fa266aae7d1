# NCSA Delta: all facts that its scripts need. Source it as `. delta.sh cpu` or `. delta.sh gpu`.
# From docs.ncsa.illinois.edu/systems/delta (running_jobs, architecture, rh9 prog_env), 2025 and 2026. Not run there yet.
device=$1
mpi='' # cray-mpich under the site's own srun; there is no mpirun
. "${BASH_SOURCE[0]%/*}/slurm.sh"
local_disk=/tmp/$USER-$SLURM_JOB_ID # of each node, 1.5 TB, emptied when the job ends
no_output_in=/u no_output_why='home is a small NFS whose locks have failed' submit_from=/work/hdd/CODE

load_modules() {
  find_modules
  module reset # the site's defaults: PrgEnv-gnu with cray-mpich
  load cray-hdf5-parallel
  [[ $device == gpu ]] || return 0
  load cudatoolkit "$accelerator"
  ask_for_mpi_on_gpus
  # NCCL over Slingshot needs its plugin. Before RHEL 9 the module nccl had it; unverified: whether that module still exists.
  module load aws-ofi-nccl || load nccl
}

if [[ $device == gpu ]]; then
  accelerator=craype-accel-nvidia80
  case ${SLURM_JOB_PARTITION:-} in
    gpuH200x8*) accelerator=craype-accel-nvidia90 ;;
    gpuA40x4*) export NCCL_P2P_LEVEL=SYS ;; # GPUs without NVLink reach each other over PCIe between NUMA domains (from a user's report)
  esac
  ((n_nodes == 1)) || export NCCL_NET='AWS Libfabric' # without the plugin a job ends instead of using sockets
  export NCCL_SOCKET_IFNAME=hsn # NCCL's bootstrap uses Slingshot, not the management network
fi
