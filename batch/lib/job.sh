# What all job scripts share; the file of the site (delta.sh, generic-slurm.sh, ...) reads it first. For bash.
#
# A script names its folder and its ranks, starts programs on all of them, and ends with what came of it:
#
#   begin FOLDER            everything of the job goes into FOLDER, what is printed into FOLDER/job.log
#   launch COMMAND ...      on all ranks; its exit code is launch's
#   end_job                 with the exit code of the command before; 85, saved and asked to stop, is put into the queue again
#
# The site's file sets: n_nodes, n_ranks; local_disk (a folder of each node's own); modules; and the functions
# load_modules, start_ranks COMMAND ... (becomes the site's launcher, by exec), is_cancelled, queue_again.
set -o pipefail

: "${LOCKSTEP_ROOT:?the folder that lockstep is installed in: module load lockstep}"
PATH=$LOCKSTEP_ROOT/bin:$PATH

# give_up WHAT FIX: nothing can be done here.
give_up() {
  printf 'error: %s (fix: %s)\n' "$1" "$2" >&2
  exit 2
}

# edited VALUE NAME: is there something in place of CHANGE_ME?
edited() { [[ $1 && $1 != *CHANGE_ME* ]] || give_up "$2 is not set" "edit the line of this job script that says $2=CHANGE_ME"; }

# Makes `module` known, which a batch shell may not know.
find_modules() {
  local init
  type module >/dev/null 2>&1 && return
  for init in "${LMOD_PKG:-/nowhere}/init/bash" "${MODULESHOME:-/nowhere}/init/bash" /usr/share/lmod/lmod/init/bash \
    /usr/share/modules/init/bash /etc/profile.d/lmod.sh /etc/profile.d/modules.sh; do
    if [[ -r $init ]]; then
      . "$init"
      return
    fi
  done
  give_up "there is no command 'module' here" "load modules before you submit, and take the templates of batch/generic"
}

# load MODULE ...: in this order; says which one is not there.
load() {
  local module
  find_modules
  for module; do
    module load "$module" || give_up "module '$module' cannot be loaded" \
      "sites replace modules: see 'module spider $module', and edit the list in ${BASH_SOURCE[1]}"
  done
}

# begin FOLDER: what is printed from here on goes into its job.log, of a job that is put into the queue again after the rest.
begin() {
  folder=$1
  mkdir -p "$folder" || give_up "cannot make folder '$folder'" "submit from a folder that compute nodes can write to"
  echo "all of this job is in $(realpath "$folder"); see job.log there"
  exec >>"$folder/job.log" 2>&1
  printf '== %s: job %s (%s) on %s nodes, %s ranks\n' "$(date '+%F %T')" "${SLURM_JOB_ID:-${PBS_JOBID:-none}}" \
    "${SLURM_JOB_NAME:-${PBS_JOBNAME:-$0}}" "$n_nodes" "$n_ranks"
  load_modules
  ! type module >/dev/null 2>&1 || module -t list 2>&1
}

# launch COMMAND ...: a signal that comes to this script (preemption, a limit) goes on to the launcher as SIGUSR1, "save and
# stop", which launchers hand to every rank; SIGTERM they do not all hand on, and some kill soon after it.
was_signalled=no
launch() {
  local pid status is_interrupted=yes
  printf '== %s: %s\n' "$(date '+%F %T')" "$*"
  start_ranks "$@" &
  pid=$!
  trap 'was_signalled=yes is_interrupted=yes; kill -USR1 "$pid" 2>/dev/null' TERM USR1 USR2 HUP
  while [[ $is_interrupted == yes ]]; do # wait returns early for a signal
    is_interrupted=no status=0
    wait "$pid" || status=$?
  done
  trap 'was_signalled=yes' TERM USR1 USR2 HUP
  ((status == 0)) || printf '== %s: exit code %s\n' "$(date '+%F %T')" "$status"
  return "$status"
}

# end_job: see above.
end_job() {
  local status=$?
  if ((status == 85)); then
    if is_cancelled; then
      echo "== saved; not put into the queue again by this script, as the batch system ends the job"
    else
      queue_again
    fi
  fi
  exit "$status"
}
