# Any cluster with Slurm, with the modules that were loaded when the job was submitted. Source it as `. generic-slurm.sh`.
mpi=$(srun --mpi=list 2>&1 | grep -owm1 pmix) # Open MPI needs it; if Slurm lacks it, its default is used
. "${BASH_SOURCE[0]%/*}/slurm.sh"
local_disk=${TMPDIR:-/tmp}
load_modules() { :; }
