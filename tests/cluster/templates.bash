#!/usr/bin/env bash
# templates.bash BUILD: every Slurm template on two nodes; those for GPUs on ones that are made up, of which a rank sees
# what Slurm shows it.
. "$(dirname "$0")/site.bash"
. "$(dirname "$0")/made_up_gpus.bash"
start_site "$1" 128
cd "$folder/work" || exit 1
install_on_gpus "$1"

# run_job NAME SCRIPT [FLAG ...]: it completes, and leaves what jobs of that name leave. Its number is in $job.
run_job() {
  local name=$1 n
  job=$(submit_script "${@:2}") || fail "$name"
  expect_job "$job" COMPLETED
  case $name in
    *reduce_all*) [ -s "$(echo results/*-"$job"/reduce_all.json)" ] || fail_job "$job" "$name has left no result" ;;
    *train*) grep -q '"state": "finished"' runs/*-"$job"/status.json || fail_job "$job" "$name has not trained" ;;
    *scaling*) for n in 1 2; do [ -s "$(echo results/*-"$job/nodes-$n/reduce_all.json")" ] || fail_job "$job" "$name has left no result of $n nodes"; done ;;
  esac
  printf -v name '%s ' "$name" "${@:3}"
  echo "${name% }: $state in $(on ctl scontrol show job "$job" | sed -n 's/.*RunTime=\([0-9:]*\).*/\1/p' | head -1)"
}

# run_on_gpus NODES GPUS NAME [FLAG ...]: with so many of each node, which the script says, or, where it says two of
# two, the FLAGs.
# Slurm shows each rank all of its node's that the job has, and no others.
run_on_gpus() {
  local prefix=$on_gpus nodes=$1 gpus=$2 name=$3 missing
  (($# == 3)) || set -- 2 2 "${@:3}"
  LOCKSTEP_MADE_UP_GPUS=visible run_job "$name" "$(job_script "$1" "$2" 1 "$name" "${few_steps[@]}")" "${@:4}"
  job_has_logged "$job" "on $nodes nodes, $((nodes * gpus)) ranks\$" || fail_job "$job" "$name: other ranks"
  missing=$(job_log "$job" | missing_of_gpus "$gpus" $((nodes * gpus)) "$name")
  [ -z "$missing" ] || fail_job "$job" "$name: not in its log: $missing"
}

# One after another, and as many ranks as this machine has cores, or messages wait for their turn.
for site in delta ibex hipergator generic; do
  for file in "$prefix/share/lockstep/batch/$site"/*.sbatch; do
    name=$site/${file##*/}
    case $name in
      generic/train_gpu.sbatch)
        run_on_gpus 2 1 "$name"
        run_on_gpus 1 2 "$name" --nodes=1
        run_on_gpus 1 1 "$name" --nodes=1 --ntasks-per-node=1 --gpus-per-node=1
        ;;
      */train_gpu.sbatch) run_on_gpus 1 1 "$name" ;;
      */train_gpu_node.sbatch) run_on_gpus 1 2 "$name" ;;
      *_gpu*.sbatch) run_on_gpus 2 1 "$name" ;;
      *) run_job "$name" "$(job_script 2 1 1 "$name" -e 's/ --max-time 3s / --max-time 1s /' -e 's/ --resume auto / --resume auto --epochs 2 /')" ;;
    esac
  done
done

# The tests of the installation, within an allocation.
cat >tests.sbatch <<'END'
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --output=tests.out
LOCKSTEP_LAUNCHER='srun --mpi=pmix' LOCKSTEP_RANKS=2 "$LOCKSTEP_ROOT/share/lockstep/tests/run" -R 'doctor|^train$'
END
job=$(submit_script tests.sbatch) || fail "the installed tests"
await_end "$job"
cp tests.out "$folder/out"
[ "$state" = COMPLETED ] || fail "the installed tests: $state"
expect_out '100% tests passed, 0 tests failed out of 2'
echo "the installed tests: $state"
