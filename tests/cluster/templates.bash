#!/usr/bin/env bash
# templates.bash BUILD: every Slurm template on two nodes: those for CPUs run, those for GPUs are accepted by sbatch.
. "$(dirname "$0")/site.bash"
start_site "$1" 128
cd "$folder/work" || exit 1

for site in delta ibex hipergator generic; do
  for file in "$prefix/share/lockstep/batch/$site"/*.sbatch; do
    name=$site/${file##*/}
    case $name in
      *_gpu*.sbatch)
        run on ctl sbatch --test-only "$(job_script 2 2 1 "$name")"
        expect_rc 0
        continue
        ;;
    esac
    # One after another, and as many ranks as this machine has cores, or messages wait for their turn.
    job=$(submit_script "$(job_script 2 1 1 "$name" -e 's/ --max-time 3s / --max-time 1s /' -e 's/ --resume auto / --resume auto --epochs 2 /')") ||
      fail "$name"
    expect_job "$job" COMPLETED
    case $name in
      *reduce_all*) [ -s "$(echo results/*-"$job"/reduce_all.json)" ] || fail_job "$job" "$name has left no result" ;;
      *train*) grep -q '"state": "finished"' runs/*-"$job"/status.json || fail_job "$job" "$name has not trained" ;;
      *scaling*) for n in 1 2; do [ -s "$(echo results/*-"$job/nodes-$n/reduce_all.json")" ] || fail_job "$job" "$name has left no result of $n nodes"; done ;;
    esac
    echo "$name: $state in $(on ctl scontrol show job "$job" | sed -n 's/.*RunTime=\([0-9:]*\).*/\1/p' | head -1)"
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
