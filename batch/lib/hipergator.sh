# UF HiPerGator: all facts that its scripts need. Source it as `. hipergator.sh cpu` or `. hipergator.sh gpu`.
# From a digest of docs.rc.ufl.edu of October 2026 and public scripts of its users. Not run there yet.
device=$1
. "${BASH_SOURCE[0]%/*}/slurm.sh"
local_disk=${TMPDIR:-/tmp} # of each node, emptied when the job ends ($SLURM_TMPDIR is gone since June 2026)
no_output_in=/home no_output_why='the site does not allow output of jobs there' submit_from="/blue/GROUP/$USER"

load_modules() {
  find_modules
  module purge
  # Unverified: the names of cuda and nccl, derived from the versions that the site lists.
  load ufrc gcc/14.2.0
  [[ $device == cpu ]] || load cuda/12.9.1
  load openmpi/5.0.10
  [[ $device == cpu ]] || load nccl/2.27.5
  mpi=${HPC_PMIX:-}
  [[ $mpi ]] || give_up "HPC_PMIX, which srun --mpi needs, is not set" "load a module openmpi that sets it: module show openmpi"
}
