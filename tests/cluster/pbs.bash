#!/usr/bin/env bash
# pbs.bash BUILD: the PBS templates under a stand-in for qsub, and those for no batch system. A training that is stopped goes on
# in a job of its own. Without a PBS this shows what the scripts do with what PBS documents, not that PBS does it.
. "$(dirname "$0")/../cli/lib.bash"
here=$(dirname "$(readlink -f "$0")")
prefix=$folder/prefix data=$folder/digits
run cmake --install "$1" --prefix "$prefix"
expect_rc 0
run "$prefix/bin/lockstep" shard synth digits --samples 320 --out "$data"
expect_rc 0
mkdir -p "$folder"/{home,work,bin}
cd "$folder/work" || exit 1
cp "$here/pbs/qsub" "$folder/bin"
# No module system is needed to see what a script asks of it.
echo 'module() { echo "module $*" >>"$HOME/modules"; }' >"$folder/module.sh"
export HOME=$folder/home SCRATCH=$folder/home LOCKSTEP_ROOT=$prefix BASH_ENV=$folder/module.sh PATH=$folder/bin:$PATH

# job_script NODES RANKS TEMPLATE [SED EXPRESSION ...]: as a user edits it, and smaller; by its job's name.
job_script() {
  local name=${3##*/}
  "$prefix/share/lockstep/batch/lib/resize" "$1" "$2" 1 "$prefix/share/lockstep/batch/$3" |
    sed -E -e '/^#PBS -A/s/CHANGE_ME/physics/' -e "s|^data=CHANGE_ME|data='$data'|" "${@:4}" >"$name"
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

for site in derecho generic; do
  rm -rf results runs ./*.o* "$HOME"/*
  export PBS_STAND_IN_HOST=$(hostname)
  if [ "$site" = derecho ]; then
    cp "$here/pbs/mpiexec" "$folder/bin"
    unset PBS_STAND_IN_HOST
  else
    rm -f "$folder/bin/mpiexec"
  fi
  suffix=$([ "$site" = generic ] || echo _cpu)
  run qsub -v LOCKSTEP_ROOT "$(job_script 2 1 "$site/reduce_all$suffix.pbs")"
  expect_job "reduce_all$suffix" 1 0
  [ -s "results/reduce_all$suffix-1/reduce_all.json" ] || fail "no result"

  # The first time it has 8 s, and the second as long as it wants.
  run qsub -v LOCKSTEP_ROOT "$(job_script 2 1 "$site/train$suffix.pbs" \
    -e 's/--resume auto/--resume auto --epochs 200 --time-limit $([ "${LOCKSTEP_RESTARTS:-}" ] \&\& echo 0 || echo 8s)/')"
  expect_job "train$suffix" 2 85
  expect_job "train$suffix" 3 0
  grep -q '"kind":"resume"' "runs/train$suffix-2/log.jsonl" || fail "did not go on from where it was"
  grep -q '"state": "finished"' "runs/train$suffix-2/status.json" || fail "did not end"
  [ "$site" = generic ] || grep -q '^module load cray-mpich' "$HOME/modules" || fail "modules: $(cat "$HOME/modules")"
done

# An account that was not set; a script submitted under another name than its job's.
cp "$prefix/share/lockstep/batch/generic/reduce_all.pbs" .
run qsub -v LOCKSTEP_ROOT reduce_all.pbs
expect_job reduce_all 4 2
expect_err "error: -A is not set .*edit the line of this job script"

# Without a batch system.
cp "$prefix/share/lockstep/batch/generic/train.sh" .
run bash train.sh
expect_rc 2
expect_err 'error: data is not set'
for name in reduce_all train; do
  "$prefix/share/lockstep/batch/lib/resize" 1 2 1 "$prefix/share/lockstep/batch/generic/$name.sh" | sed -e "s|^data=CHANGE_ME|data='$data'|" >"$name.sh"
  RANKS=2 run bash "$name.sh"
  [ "$rc" -eq 0 ] || { cat results/*/job.log runs/train/job.log && fail "$name.sh"; }
done
[ -s runs/train/weights.h5 ] || fail "no weights"
