# What all job scripts share; the site's file (delta.sh, generic-slurm.sh, ...) sources it first. For bash.
#
# A script names its folder, starts programs on all ranks, and ends with their result:
#
#   begin FOLDER            all files of the job go into FOLDER, its output into FOLDER/job.log
#   launch COMMAND ...      runs it on all ranks; returns its exit code
#   end_job                 exits with the exit code of the last command; after 85 (asked to stop, saved) the job is requeued
#
# The site's file sets: n_nodes, n_ranks; local_disk (a local folder of each node); no_output_in, no_output_why and submit_from,
# where jobs should not write; modules; and the functions load_modules, start_ranks COMMAND ... (becomes the site's launcher, by
# exec), is_cancelled, queue_again.
set -o pipefail

# give_up WHAT FIX: prints the error and exits with 2.
give_up() {
  printf 'error: %s (fix: %s)\n' "$1" "$2" >&2
  exit 2
}

# edited VALUE NAME [LINE]: gives up if VALUE is empty or still CHANGE_ME; LINE is the text of the line to edit (NAME=CHANGE_ME).
edited() { [[ $1 && $1 != *CHANGE_ME* ]] || give_up "$2 is not set" "edit the line of this job script that says ${3:-$2=CHANGE_ME}"; }

# bind_by_mpirun CORES: sets `binding` to flags with which mpirun gives each rank CORES neighbouring cores. By default,
# Open MPI binds one or two ranks of a node to one core each. More ranks share all cores of a NUMA node.
bind_by_mpirun() {
  case $(mpirun --version 2>&1) in
    *'Open MPI'*) binding=(--map-by "ppr:$(((n_ranks + n_nodes - 1) / n_nodes)):node:PE=$1" --bind-to core) ;;
    *HYDRA*) binding=(-bind-to "core:$1") ;;
    *) binding=() ;;
  esac
}

# Defines `module`, which a batch shell may lack.
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
  give_up "there is no command 'module' here" "load modules before you submit, and use the templates of batch/generic"
}

# load MODULE ...: loads them in this order; names the one that cannot be loaded.
load() {
  local module
  find_modules
  for module; do
    module load "$module" || give_up "module '$module' cannot be loaded" \
      "sites replace modules: see 'module spider $module', and edit the list in ${BASH_SOURCE[1]}"
  done
}

# begin FOLDER: from here on, output is appended to its job.log; a requeued job continues the same file.
begin() {
  folder=$1
  mkdir -p "$folder" || give_up "cannot make folder '$folder'" "submit from a folder that compute nodes can write to"
  echo "all of this job is in $(realpath "$folder"); see job.log there"
  [[ $(realpath "$folder") != "${no_output_in:-/nowhere}"/* ]] ||
    printf 'warning: that is in %s: %s (fix: submit from %s)\n' "$no_output_in" "$no_output_why" "$submit_from" >&2
  exec 3>&1 >>"$folder/job.log" 2>&1
  printf '== %s: job %s (%s) on %s nodes, %s ranks\n' "$(date '+%F %T')" "${SLURM_JOB_ID:-${PBS_JOBID:-none}}" \
    "${SLURM_JOB_NAME:-${PBS_JOBNAME:-$0}}" "$n_nodes" "$n_ranks"
  # If lockstep is a module that was loaded when the job was submitted, 'module purge' and 'module reset' unload it too.
  local root=$LOCKSTEP_ROOT
  load_modules
  export LOCKSTEP_ROOT=$root PATH=$root/bin:$PATH
  ! type module >/dev/null 2>&1 || module -t list 2>&1
}

# Enables MPI on GPU memory if the programs are linked with the part of cray-mpich that supports it; without that part, MPI_Init would
# end them. Call it after loading modules.
ask_for_mpi_on_gpus() {
  [[ $(ldd "$LOCKSTEP_ROOT"/bin/{lockstep,reduce_all} 2>/dev/null) != *libmpi_gtl* ]] || export MPICH_GPU_SUPPORT_ENABLED=1
}

# launch COMMAND ...: forwards a signal to this script (preemption, a limit) to the launcher as SIGUSR1, "save and stop". Launchers
# forward SIGUSR1 to every rank; not all forward SIGTERM, and some kill soon after it. 85 is also returned if the signal came before,
# or ended a program that does not save (138, or 10 from MPICH's launcher): nothing is lost.
was_signalled=no
trap 'was_signalled=yes' TERM USR1 USR2 HUP
launch() {
  local pid status is_interrupted=yes
  if [[ $was_signalled == yes ]]; then
    printf '== %s: asked to stop, so not started: %s\n' "$(date '+%F %T')" "$*"
    return 85
  fi
  printf '== %s: %s\n' "$(date '+%F %T')" "$*"
  start_ranks "$@" &
  pid=$!
  trap 'was_signalled=yes is_interrupted=yes; kill -USR1 "$pid" 2>/dev/null' TERM USR1 USR2 HUP
  [[ $was_signalled == no ]] || kill -USR1 "$pid" 2>/dev/null # it came just now
  while [[ $is_interrupted == yes ]]; do # wait returns early for a signal
    is_interrupted=no status=0
    wait "$pid" || status=$?
  done
  trap 'was_signalled=yes' TERM USR1 USR2 HUP
  ((status != 138 && status != 10)) || status=85
  ((status == 0)) || printf '== %s: exit code %s\n' "$(date '+%F %T')" "$status"
  return "$status"
}

# end_job: see above. A failure is also printed to the output file of the job itself.
end_job() {
  local status=$?
  if ((status != 0 && status != 85)); then
    printf 'failed (exit code %s); %s/job.log ends:\n' "$status" "$folder" >&3
    tail -n 20 "$folder/job.log" >&3
  fi
  if ((status == 85)); then
    if is_cancelled; then
      echo "== saved; not requeued by this script, because the batch system ends the job"
    else
      queue_again
    fi
  fi
  exit "$status"
}
