# Slurm at any site; the site's file sources it after it has set `mpi` (of srun --mpi; empty: the site's default).
. "${BASH_SOURCE[0]%/*}/job.sh"

n_nodes=${SLURM_JOB_NUM_NODES:-}
[[ $n_nodes ]] || give_up "this is a job script of Slurm, but no job runs here" "sbatch $0"
[[ ${SLURM_NTASKS_PER_NODE:-} ]] || give_up "SLURM_NTASKS_PER_NODE is not set" "#SBATCH --ntasks-per-node=N in the job script"
n_ranks=$((n_nodes * SLURM_NTASKS_PER_NODE))
edited "${SLURM_JOB_ACCOUNT:-none}" --account

# use_nodes N: uses N of the job's nodes, for a series of runs in one job.
use_nodes() {
  n_nodes=$1
  n_ranks=$(($1 * SLURM_NTASKS_PER_NODE))
}

# --cpus-per-task: since Slurm 22.05 srun does not take it from sbatch. --kill-on-bad-exit=0: ranks that have saved end
# one by one. GPUs are not bound to ranks: programs choose theirs, and hiding other GPUs from a rank breaks direct copies
# between GPUs (open-mpi/ompi#11949). This is the default, unless the job asks for GPUs per task. --gpu-bind=none has the
# same effect, but before Slurm 23.11 it leaves CUDA_VISIBLE_DEVICES unset (its bug 16807): ranks then see GPUs of other
# jobs, unless Slurm restricts devices (ConstrainDevices).
start_ranks_by_srun() {
  unset SLURM_GPU_BIND SLURM_TRES_BIND
  exec srun ${mpi:+--mpi="$mpi"} --nodes="$n_nodes" --ntasks="$n_ranks" --ntasks-per-node="$SLURM_NTASKS_PER_NODE" \
    --cpus-per-task="${SLURM_CPUS_PER_TASK:-1}" --cpu-bind=cores ${SLURM_GPUS_PER_TASK:+--gpu-bind=none} --kill-on-bad-exit=0 "$@"
}

start_ranks() { start_ranks_by_srun "$@"; }

is_cancelled() { [[ $(scontrol show job "$SLURM_JOB_ID" | sed -n 's/.*JobState=\([A-Z]*\).*/\1/p') != RUNNING ]]; }

# A job that is requeued so often makes no progress.
queue_again() {
  if ((${SLURM_RESTART_COUNT:-0} >= ${LOCKSTEP_MOST_RESTARTS:-100})); then
    give_up "stopped and requeued ${SLURM_RESTART_COUNT} times" "give the job a longer --time, or set LOCKSTEP_MOST_RESTARTS"
  fi
  echo "== saved; requeued"
  scontrol requeue "$SLURM_JOB_ID" ||
    give_up "Slurm does not requeue this job" "sbatch it again: with the same folder it resumes"
}
