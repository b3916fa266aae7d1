# Any cluster with Slurm: with what was loaded when the job was submitted. Read as `. generic-slurm.sh`, or with gpu after it.
mpi=$(srun --mpi=list 2>&1 | grep -owm1 pmix) # Open MPI needs it; where Slurm does not have it, its default must do
. "${BASH_SOURCE[0]%/*}/slurm.sh"
local_disk=${TMPDIR:-/tmp}
load_modules() { :; }

if [[ ${1:-} == gpu ]]; then
  export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET # says which network it uses: it falls back to sockets without a word
fi
