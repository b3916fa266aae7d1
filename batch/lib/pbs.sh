# PBS at any site; the site's file sources it. A script has the name of its job (#PBS -N): NAME.pbs.
. "${BASH_SOURCE[0]%/*}/job.sh"

[[ -r ${PBS_NODEFILE:-} ]] || give_up "this is a job script of PBS, but no job runs here" "qsub -v LOCKSTEP_ROOT $0"
n_ranks=$(wc -l <"$PBS_NODEFILE") # a line for each rank, from select=...:mpiprocs
n_nodes=$(sort -u "$PBS_NODEFILE" | wc -l)
edited "${PBS_ACCOUNT:-none}" 'the account (-A)' '-A CHANGE_ME'
cd "${PBS_O_WORKDIR:?}" || exit 2 # jobs start in $HOME

# use_nodes N: uses N of the job's nodes, for a series of runs in one job.
use_nodes() {
  n_ranks=$((n_ranks / n_nodes * $1))
  n_nodes=$1
}

# PBS sends a signal to a job that it ends (qdel, preemption), and requeues a preempted job itself. Before a time limit lockstep stops
# on its own.
is_cancelled() { [[ $was_signalled == yes ]]; }

queue_again() {
  local script=$PBS_O_WORKDIR/$PBS_JOBNAME.pbs values
  [[ ! ${PBS_ARRAY_INDEX:-} ]] || give_up "stopped; a part of an array is not requeued" "qsub -v LOCKSTEP_ROOT $script"
  [[ -r $script ]] || give_up "saved, but there is no '$script' to submit again" "name the job (#PBS -N) as its file, and qsub that"
  if ((${LOCKSTEP_RESTARTS:-0} >= ${LOCKSTEP_MOST_RESTARTS:-100})); then
    give_up "stopped and requeued $LOCKSTEP_RESTARTS times" "give the job a longer walltime, or set LOCKSTEP_MOST_RESTARTS"
  fi
  values=("LOCKSTEP_ROOT=$LOCKSTEP_ROOT" "LOCKSTEP_FOLDER=$folder" "LOCKSTEP_RESTARTS=$((${LOCKSTEP_RESTARTS:-0} + 1))"
    ${LOCKSTEP_MOST_RESTARTS:+"LOCKSTEP_MOST_RESTARTS=$LOCKSTEP_MOST_RESTARTS"})
  [[ ${values[*]} != *,* ]] || give_up "saved, but qsub -v cannot pass a value with a comma: ${values[*]}" \
    "use folder names without commas, or set LOCKSTEP_ROOT and LOCKSTEP_FOLDER in the script; then qsub it again"
  echo "== saved; submitted again, as a new job:"
  qsub -v "$(IFS=, && echo "${values[*]}")" "$script"
}
