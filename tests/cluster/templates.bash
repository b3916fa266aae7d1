# The Slurm templates as jobs on two nodes, on top of site.bash and made_up_gpus.bash. Those for GPUs run on made-up
# ones; a rank sees the GPUs that Slurm shows it.

# The templates that run unless all are requested: for each site some for hosts and some for GPUs. requeue.bash has the
# generic one for training on hosts.
chosen_templates=(delta/train_gpu_nodes ibex/reduce_all_cpu hipergator/train_gpu generic/reduce_all generic/train_gpu)

# begin_templates [all]: begins each as a part.
begin_templates() {
  local name lacking
  local -a names all
  names=("${chosen_templates[@]/%/.sbatch}")
  mapfile -t all < <(cd "$prefix/share/lockstep/batch" && ls -- */*.sbatch)
  [ $# -eq 0 ] || names=("${all[@]}")
  lacking=$(comm -23 <(printf '%s\n' "${all[@]}" | kinds_of) <(printf '%s\n' "${names[@]}" | kinds_of))
  [ -z "$lacking" ] || fail "chosen_templates lacks: $lacking"
  for name in "${names[@]}"; do
    case $name in
      generic/train_gpu.sbatch)
        begin_part "$name.nodes" run_on_gpus 2 1 "$name"
        [ $# -gt 0 ] || continue
        begin_part "$name.node" run_on_gpus 1 2 "$name" --nodes=1
        begin_part "$name.gpu" run_on_gpus 1 1 "$name" --nodes=1 --ntasks-per-node=1 --gpus-per-node=1
        ;;
      */train_gpu.sbatch) begin_part "$name" run_on_gpus 1 1 "$name" ;;
      */train_gpu_node.sbatch) begin_part "$name" run_on_gpus 1 2 "$name" ;;
      *_gpu*.sbatch) begin_part "$name" run_on_gpus 2 1 "$name" ;;
      *) begin_part "$name" run_on_hosts "$name" ;;
    esac
  done
}

# kinds_of: prints the kinds of which at least one has to run: for each SITE/SCRIPT on stdin SITE, and "for hosts" or
# "for GPUs".
kinds_of() { awk -F / '{ print $1; print $2 ~ /_gpu/ ? "for GPUs" : "for hosts" }' | sort -u; }

# run_job NAME SCRIPT [FLAG ...]: expects that it completes, and leaves what jobs of that name leave. $job is its
# number.
run_job() {
  local name=$1 n
  job=$(submit_script "${@:2}") || fail "$name"
  expect_job "$job" COMPLETED
  case $name in
    *strategies*) grep -q '^PASS' "$(echo results/*-"$job"/strategies.txt)" || fail_job "$job" "$name has no verdict" ;;
    *reduce_all*) [ -s "$(echo results/*-"$job"/reduce_all.json)" ] || fail_job "$job" "$name has left no result" ;;
    *train*) grep -q '"state": "finished"' runs/*-"$job"/status.json || fail_job "$job" "$name has not trained" ;;
    *scaling*) for n in 1 2; do [ -s "$(echo results/*-"$job/nodes-$n/reduce_all.json")" ] || fail_job "$job" "$name has left no result of $n nodes"; done ;;
  esac
  printf -v name '%s ' "$name" "${@:3}"
  echo "${name% }: $state in $(told "$job" RunTime)"
}

run_on_hosts() { run_job "$1" "$(job_script 2 1 1 "$1" -e 's/ --max-time 3s / --max-time 1s /' -e 's/ --resume auto / --resume auto --epochs 2 /')"; }

# run_on_gpus NODES GPUS NAME [FLAG ...]: runs it with so many GPUs of each node, as in the script, or by the FLAGS if
# the script says two of two. Slurm shows each rank all GPUs of its node that the job has, and no others.
run_on_gpus() {
  local prefix=$on_gpus nodes=$1 gpus=$2 name=$3 missing
  (($# == 3)) || set -- 2 2 "${@:3}"
  LOCKSTEP_MADE_UP_GPUS=visible run_job "$name" "$(job_script "$1" "$2" 1 "$name" "${few_steps[@]}")" "${@:4}"
  job_has_logged "$job" "on $nodes nodes, $((nodes * gpus)) ranks\$" || fail_job "$job" "$name: other ranks"
  missing=$(job_log "$job" | missing_of_gpus "$gpus" $((nodes * gpus)) "$name")
  [ -z "$missing" ] || fail_job "$job" "$name: not in its log: $missing"
}

# run_installed_tests: runs them within an allocation.
run_installed_tests() {
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
}
