#!/usr/bin/env bash
# pbs.bash BUILD [all]: runs the PBS templates (of Derecho's for GPUs a choice, or all) under a stand-in for qsub, and
# those for no batch system. A training that is stopped resumes in another job. Without a real PBS, this shows what the
# scripts do with what PBS documents, not that PBS does it.
. "$(dirname "$0")/../cli/lib.bash"
. "$(dirname "$0")/made_up_gpus.bash"
. "$(dirname "$0")/endless.bash"
here=$(dirname "$(readlink -f "$0")")
prefix=$folder/prefix data=$folder/digits
run cmake --install "$1" --prefix "$prefix"
expect_rc 0
run "$prefix/bin/lockstep" shard synth digits --samples 320 --out "$data"
expect_rc 0
run "$prefix/bin/lockstep" shard synth images --samples 32 --height 32 --width 32 --classes 10 --out "$data-in-colour"
expect_rc 0
mkdir -p "$folder"/{home,work,bin}
cd "$folder/work" || exit 1
cp "$here/pbs/qsub" "$here/pbs/stopped_once" "$folder/bin"
# A recording stands in for the module system. Like a real one, it removes what the module lockstep has set.
cat >"$folder/module.sh" <<'END'
module() {
  echo "module $*" >>"$HOME/modules"
  [[ "$*" != *purge* ]] || { PATH=${PATH//"$LOCKSTEP_ROOT/bin:"/} && unset LOCKSTEP_ROOT; }
}
END
export HOME=$folder/home SCRATCH=$folder/home LOCKSTEP_ROOT=$prefix BASH_ENV=$folder/module.sh PATH=$folder/bin:$PATH

fewer_calls=(-e 's/ --max-time 3s / --max-time 1s /')
# job_script NODES RANKS TEMPLATE [SED EXPRESSION ...]: makes a template smaller, as a user edits it, in a file with its
# job's name.
job_script() {
  local name=${3##*/}
  "$prefix/share/lockstep/batch/lib/resize" "$1" "$2" 1 "$prefix/share/lockstep/batch/$3" |
    sed -E -e '/^#PBS -A/s/CHANGE_ME/physics/' -e "s|^data=CHANGE_ME|data='$data'|" "${fewer_calls[@]}" "${@:4}" >"$name"
  echo "$name"
}
# expect_job NAME NUMBER CODE
expect_job() {
  command_line="qsub $1"
  rc=$(cat "$1.o$2.rc")
  cat "$1.o$2" >"$folder/err"
  cat {runs,results}/*/{,*/}job.log >"$folder/out" 2>/dev/null
  expect_rc "$3"
}

# begin_site NAME: prepares the site's launcher, and counts jobs from 1.
begin_site() {
  rm -rf results runs ./*.o* "${HOME:?}"/*
  PBS_STAND_IN_HOST=$(hostname) && export PBS_STAND_IN_HOST
  if [ "$1" = derecho ]; then
    cp "$here/pbs/mpiexec" "$folder/bin"
    unset PBS_STAND_IN_HOST
  else
    rm -f "$folder/bin/mpiexec"
  fi
}

for site in derecho generic; do
  begin_site "$site"
  suffix=$([ "$site" = generic ] || echo _cpu)
  run qsub -v LOCKSTEP_ROOT "$(job_script 2 1 "$site/reduce_all$suffix.pbs")"
  expect_job "reduce_all$suffix" 1 0
  [ -s "results/reduce_all$suffix-1/reduce_all.json" ] || fail "no result"
  if [ "$site" = derecho ]; then
    grep -q -- '-ppn 1 -d 1 --cpu-bind depth' "$HOME/mpiexec" || fail "not as the select line says: $(cat "$HOME/mpiexec")"
  fi

  # shellcheck disable=SC2016  # for the job's shell
  # The first job's ranks are asked to stop once they train.
  run qsub -v LOCKSTEP_ROOT "$(job_script 2 1 "$site/train$suffix.pbs" -e 's/^launch lockstep train/launch stopped_once lockstep train/' \
    -e "$(train_without_end "$folder" '"${LOCKSTEP_RESTARTS:-}"')")"
  expect_job "train$suffix" 2 85
  expect_job "train$suffix" 3 0
  grep -q '"kind":"resume"' "runs/train$suffix-2/log.jsonl" || fail "did not go on from where it was"
  grep -q '"state": "finished"' "runs/train$suffix-2/status.json" || fail "did not end"
  [ "$(grep '^digest ' "runs/train$suffix-2/job.log" | tail -1)" = "$(digest_without_interruption "runs/train$suffix-2" "$data")" ] ||
    fail "another result than without an interruption"
  [ "$site" = generic ] || grep -q '^module load cray-mpich' "$HOME/modules" || fail "modules: $(cat "$HOME/modules")"
  [ "$site" = derecho ] || continue
  run qsub -v LOCKSTEP_ROOT "$(job_script 2 2 "$site/scaling_cpu.pbs")"
  expect_job scaling_cpu 4 0
  [ -s results/scaling_cpu-4/nodes-1/reduce_all.json ] || fail "no result of one node"
  grep -q -- '^-n 2 -ppn 2 ' "$HOME/mpiexec" || fail "not the ranks of the select line: $(cat "$HOME/mpiexec")"

  run qsub -v LOCKSTEP_ROOT "$(job_script 2 1 "$site/train_fsdp.pbs" -e "s|^data=.*|data='$data-in-colour'|" \
    -e 's/ --unit-params / --max-steps 2 --batch 8 --bn-group 4&/')"
  expect_job train_fsdp 5 0
  grep -q '"strategy": "fsdp"' runs/train_fsdp-5/run.json || fail "another strategy"
  grep -q '"state": "finished"' runs/train_fsdp-5/status.json || fail "did not end"
done

# An account that was not set, and a script that was submitted under another name than its job's.
cp "$prefix/share/lockstep/batch/generic/reduce_all.pbs" .
run qsub -v LOCKSTEP_ROOT reduce_all.pbs
expect_job reduce_all 4 2
expect_err 'error: the account \(-A\) is not set .*edit the line of this job script that says -A CHANGE_ME'

# A message of one line says what a script lacks, and what to do.
tells() {
  local message=$1
  shift
  run env "$@"
  expect_rc 2
  expect_one_error
  expect_err "$message"
  [ "$(wc -l <"$folder/err")" -eq 1 ] || fail "more than a message"
}
batch=$prefix/share/lockstep/batch
tells "no lockstep in LOCKSTEP_ROOT='' .*qsub -v LOCKSTEP_ROOT" -u LOCKSTEP_ROOT bash "$batch/generic/train.pbs"
tells "no lockstep in LOCKSTEP_ROOT='/not/there' .*module load lockstep, then sbatch" LOCKSTEP_ROOT=/not/there bash "$batch/delta/train_cpu.sbatch"
tells "a job script of PBS, but no job runs here" -u PBS_NODEFILE bash "$batch/generic/train.pbs"
tells "a job script of Slurm, but no job runs here" -u SLURM_JOB_NUM_NODES bash "$batch/delta/train_cpu.sbatch"
tells "SCRATCH is not set" -u SCRATCH PBS_NODEFILE="$HOME/nodes.1" PBS_O_WORKDIR="$PWD" bash "$batch/derecho/train_cpu.pbs"
tells "RANKS=two is not a number of ranks" RANKS=two bash "$batch/generic/train.sh"
if mpirun --version 2>&1 | grep -q 'Open MPI'; then
  tells "RANKS=100000 is more than the [0-9]+ cores of this machine" -u OMPI_MCA_rmaps_base_oversubscribe \
    -u PRTE_MCA_rmaps_default_mapping_policy RANKS=100000 bash "$batch/generic/train.sh"
fi
tells "HOSTS=/not/there names no hosts" HOSTS=/not/there bash "$batch/generic/train.sh"

# The job that resumes gets all variables and options of this one, or a message says so.
cat >again.pbs <<'END'
#!/bin/bash
#PBS -N again
#PBS -A physics
#PBS -l select=1:ncpus=1:mpiprocs=1:ompthreads=1
. "$LOCKSTEP_ROOT/share/lockstep/batch/lib/generic-pbs.sh"
begin "${LOCKSTEP_FOLDER:-${FIRST_FOLDER:-runs/again}}"
(exit 85)
end_job
END
run qsub -v LOCKSTEP_ROOT,LOCKSTEP_MOST_RESTARTS=1 again.pbs
expect_job again 5 85
expect_job again 6 2
expect_out 'stopped and requeued 1 times'
FIRST_FOLDER=runs/a,b run qsub -v LOCKSTEP_ROOT,FIRST_FOLDER again.pbs
expect_job again 7 2
expect_out 'qsub -v cannot pass a value with a comma: .*runs/a,b'

if [ "${2:-}" = all ]; then
  run qsub -v LOCKSTEP_ROOT "$(job_script 2 1 generic/strategies.pbs)"
  expect_job strategies 8 0
  grep -q '^PASS' results/strategies-8/strategies.txt || fail "no verdict"
  grep -qE '^zero1 +same ' strategies.o8 || fail "the table is not in the job's output: $(cat strategies.o8)"
fi

# Without a batch system, each rank has its share of the cores.
printf '#!/bin/sh\necho "$*" >>"%s"\nexec "%s" "$@"\n' "$HOME/mpirun" "$(type -P mpirun)" >"$folder/bin/mpirun"
chmod +x "$folder/bin/mpirun"
cp "$prefix/share/lockstep/batch/generic/train.sh" .
run bash train.sh
expect_rc 2
expect_err 'error: data is not set'
for name in reduce_all train; do
  "$prefix/share/lockstep/batch/lib/resize" 1 2 1 "$prefix/share/lockstep/batch/generic/$name.sh" |
    sed -E -e "s|^data=CHANGE_ME|data='$data'|" "${fewer_calls[@]}" -e 's/ --resume auto / --resume auto --max-steps 2 /' >"$name.sh"
  RANKS=2 run bash "$name.sh"
  [ "$rc" -eq 0 ] || { cat results/*/job.log runs/train/job.log && fail "$name.sh"; }
done
[ -s runs/train/weights.h5 ] || fail "no weights"
grep -qE -e '--map-by ppr:2:node:PE=1 --bind-to core|-bind-to core:1' "$HOME/mpirun" || [ "$(nproc --all)" -lt 2 ] || fail "not bound: $(cat "$HOME/mpirun")"

# A signal during a program that does not save, and one between two programs: 85, and nothing more is started.
cat >stopped.sh <<'END'
. "$LOCKSTEP_ROOT/share/lockstep/batch/lib/generic-mpirun.sh"
no_output_in=$PWD no_output_why='it is small' submit_from=/tmp
begin "results/$1"
[[ $1 != between ]] || kill -USR1 $$
launch sleep 97.531 || end_job
launch touch too-far
end_job
END
run bash stopped.sh between
expect_rc 85
expect_err "warning: that is in $PWD: it is small .fix: submit from /tmp"
grep -q 'asked to stop, so not started: sleep' results/between/job.log || fail "$(cat results/between/job.log)"
bash stopped.sh during &
pid=$!
both_sleep() { [ "$(pids_with 97.531 | wc -l)" -ge 3 ]; } # and their launcher
await both_sleep
kill -USR1 "$pid"
rc=0
wait "$pid" || rc=$?
cat results/during/job.log >"$folder/out"
expect_rc 85
[ ! -e too-far ] || fail "went on"

# The templates for GPUs, on made-up ones. All ranks are on this machine, whatever nodes there are.
install_on_gpus "$1"
# expect_on_gpus N LOG NAME
expect_on_gpus() {
  local missing
  missing=$(missing_of_gpus "$1" "$1" "$3" <"$2")
  [ -z "$missing" ] || { cat "$2" && fail "$3: not in its log: $missing"; }
  [[ $3 != *train* ]] || grep -q '"state": "finished"' "${2%/*}/status.json" || fail "$3 has not trained"
}
for site in derecho generic; do
  begin_site "$site"
  number=0
  for file in "$prefix/share/lockstep/batch/$site"/*_gpu*.pbs; do
    name=${file##*/}
    [[ ${2:-} == all || $name != train_gpu@(|_node).pbs || $site != derecho ]] || continue
    case $site/$name in derecho/train_gpu.pbs) nodes=1 gpus=1 ;; *_node.pbs) nodes=1 gpus=2 ;; *) nodes=2 gpus=1 ;; esac
    number=$((number + 1))
    run qsub -v "LOCKSTEP_ROOT=$on_gpus,LOCKSTEP_MADE_UP_GPUS=$((nodes * gpus))" "$(job_script "$nodes" "$gpus" "$site/$name" "${few_steps[@]}")"
    expect_job "${name%.pbs}" "$number" 0
    expect_on_gpus $((nodes * gpus)) */"${name%.pbs}-$number"/job.log "$name"
  done
done
"$prefix/share/lockstep/batch/lib/resize" 1 2 1 "$prefix/share/lockstep/batch/generic/train_gpu.sh" |
  sed -E -e "s|^data=CHANGE_ME|data='$data'|" "${few_steps[@]}" >train_gpu.sh
LOCKSTEP_ROOT=$on_gpus LOCKSTEP_MADE_UP_GPUS=2 RANKS=2 run bash train_gpu.sh
[ "$rc" -eq 0 ] || { cat runs/train_gpu/job.log && fail "train_gpu.sh"; }
expect_on_gpus 2 runs/train_gpu/job.log train_gpu.sh
