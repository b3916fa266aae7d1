# Any cluster with Slurm: with what was loaded when the job was submitted. Read as `. generic-slurm.sh`.
mpi=$(srun --mpi=list 2>&1 | grep -owm1 pmix) # Open MPI needs it; where Slurm does not have it, its default must do
. "${BASH_SOURCE[0]%/*}/slurm.sh"
local_disk=${TMPDIR:-/tmp}
load_modules() { :; }
