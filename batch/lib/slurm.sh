# Slurm, whatever the site; read by its file after it has set `mpi` (of srun --mpi; empty: the site's default).
. "${BASH_SOURCE[0]%/*}/job.sh"

n_nodes=${SLURM_JOB_NUM_NODES:-}
[[ $n_nodes ]] || give_up "this is a job script of Slurm, and here is no job" "sbatch $0"
[[ ${SLURM_NTASKS_PER_NODE:-} ]] || give_up "SLURM_NTASKS_PER_NODE is not set" "#SBATCH --ntasks-per-node=N in the job script"
n_ranks=$((n_nodes * SLURM_NTASKS_PER_NODE))
edited "${SLURM_JOB_ACCOUNT:-none}" --account

# use_nodes N: of those of the job, as for a series of runs of one job.
use_nodes() {
  n_nodes=$1
  n_ranks=$(($1 * SLURM_NTASKS_PER_NODE))
}

# --cpus-per-task: since Slurm 22.05 srun does not take it from sbatch. --kill-on-bad-exit=0: ranks that have saved end
# one by one. GPUs are bound to no rank: programs choose theirs, and hiding others from a rank breaks direct copies
# between GPUs (open-mpi/ompi#11949). That is so without a word, unless GPUs of each rank were asked for.
# --gpu-bind=none says it too, but before Slurm 23.11 it leaves CUDA_VISIBLE_DEVICES unset (its bug 16807): ranks then
# see GPUs of other jobs, where Slurm does not keep devices from them (ConstrainDevices).
start_ranks_by_srun() {
  unset SLURM_GPU_BIND SLURM_TRES_BIND
  exec srun ${mpi:+--mpi="$mpi"} --nodes="$n_nodes" --ntasks="$n_ranks" --ntasks-per-node="$SLURM_NTASKS_PER_NODE" \
    --cpus-per-task="${SLURM_CPUS_PER_TASK:-1}" --cpu-bind=cores ${SLURM_GPUS_PER_TASK:+--gpu-bind=none} --kill-on-bad-exit=0 "$@"
}

start_ranks() { start_ranks_by_srun "$@"; }

is_cancelled() { [[ $(scontrol show job "$SLURM_JOB_ID" | sed -n 's/.*JobState=\([A-Z]*\).*/\1/p') != RUNNING ]]; }

# Each time it has been put there it should have gone on; what stops so often does not.
queue_again() {
  if ((${SLURM_RESTART_COUNT:-0} >= ${LOCKSTEP_MOST_RESTARTS:-100})); then
    give_up "stopped and put into the queue again ${SLURM_RESTART_COUNT} times" "give the job a longer --time, or set LOCKSTEP_MOST_RESTARTS"
  fi
  echo "== saved; put into the queue again"
  scontrol requeue "$SLURM_JOB_ID" ||
    give_up "Slurm does not put this job into the queue again" "sbatch it once more: with the same folder it goes on"
}
