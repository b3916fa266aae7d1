#!/usr/bin/env bash
# preempt.bash [N [PHASE ...]]: SIGTERM comes to a random rank of two, or to its guard, in each phase of `lockstep train`, N times
# each (1): the run ends with 85 within a step and a save; there is a whole checkpoint, or, where nothing was trained yet, none at
# all; and the next run goes on from it. The last line sums up.
. "$(dirname "$0")/ranks.bash"
n=${1:-1}
phases=("${@:2}")
[ ${#phases[@]} -gt 0 ] || phases=(init staging warm-up step evaluation saving)
cd "$folder" || exit 1
run "$REDUCE_ALL" shard synth digits --out d --samples 12000 --chunk-size 64K
expect_rc 0
run "$REDUCE_ALL" shard split d --out both --val 0.5 --join
expect_rc 0
declare -A n_saved=()

# takes_signals: whether rank 0 does something about SIGTERM, as before MPI_Init; until then it just ends.
takes_signals() { has_line '^SigCgt:[[:space:]]*[0-9a-f]*[4-7c-f][0-9a-f]\{3\}$' "/proc/$(process_of 0)/status"; }

# strike PHASE: of the run in $run_dir.
strike() {
  local victims
  case $1 in
    init) await takes_signals && sleep "0.$((RANDOM % 2))$((RANDOM % 10))" ;;
    staging) await compgen -G "local/*" >/dev/null ;;
    warm-up) await test -s "$run_dir/run.json" ;;
    step) await has_logged '"kind":"train"' ;;
    evaluation) await has_line 'training: loss' err ;;
    saving) await compgen -G "$run_dir/checkpoints/*.tmp-*/rank-*" >/dev/null ;;
  esac
  mapfile -t victims < <(ranks_with "$run_dir" | grep -vx "$launcher")
  kill -TERM "${victims[RANDOM % ${#victims[@]}]}"
}

for phase in "${phases[@]}"; do
  n_saved[$phase]=0
  for ((i = 0; i < n; ++i)); do
    rm -rf "$run_dir" local out err # what the run before has said is no sign of this one
    train=(train digits --data both --threads 1 --run-dir "$run_dir" --resume auto)
    [ "$phase" = staging ] && train+=(--stage local)
    [ "$phase" = saving ] && train+=(--save-every '640 samples')
    start launcher 2 "${train[@]}" --epochs 300
    strike "$phase"
    begin=$SECONDS
    end
    expect_rc 85
    [ $((SECONDS - begin)) -le 10 ] || fail "$phase: took $((SECONDS - begin)) s"
    if compgen -G "$run_dir/checkpoints/step-*" >/dev/null; then
      run "$REDUCE_ALL" ckpt verify "$run_dir"
      expect_rc 0
      ((++n_saved[$phase]))
    else
      [[ $phase = init || $phase = staging || $phase = warm-up ]] || fail "$phase: no checkpoint"
    fi
    run "$REDUCE_ALL" "${train[@]}" --epochs 300 --max-steps 1 --nproc 2
    expect_rc 0
    await none_with "$run_dir"
  done
done
for phase in "${phases[@]}"; do echo -n "$phase: $n ended with 85, ${n_saved[$phase]} with a checkpoint; "; done
echo "all went on"
