#!/usr/bin/env bash
# strategies.bash: a rank of `lockstep train` is killed under each strategy in turn, and the run goes on under the next
# one, on another number of ranks. It ends on one rank, with the bits of an uninterrupted run. Half of the ranks are on
# each of two nodes, or all are on one if namespaces cannot be made.
. "$(dirname "$0")/ranks.bash"
. "$(dirname "$0")/two_nodes.bash"
cd "$folder" || exit 1
train=(train digits --synthetic-samples 256 --batch 32 --epochs 4 --val-split '' --deterministic --threads 1 --digest
  --optimizer lamb --lr 0.01 --clip-norm 0.1)
no_nodes=$(why_no_nodes)
echo "${no_nodes:-two nodes}"

run "$REDUCE_ALL" train digits --strategy unknown
expect_rc 2
mapfile -t strategies < <(sed -n 's/^ *expected: one of //p' "$folder/err" | sed 's/, /\n/g')
[ "${#strategies[@]}" -ge 2 ] || fail "no strategies to choose from"

run "$REDUCE_ALL" "${train[@]}" --run-dir "$folder/whole"
expect_rc 0
whole=$(grep '^digest ' "$folder/out")
[ -n "$whole" ] || fail "no digest"

# 32 steps, a checkpoint after every second one.
ranks=(4 2)
for i in "${!strategies[@]}"; do
  n=${ranks[i % 2]}
  fault=kill:1:training:$((5 + 26 * i / ${#strategies[@]}))
  arguments=("${train[@]}" --save-every '64 samples' --resume auto --run-dir "$run_dir" --strategy "${strategies[i]}" --inject "$fault")
  if [ -z "$no_nodes" ]; then on_nodes "$n" "${arguments[@]}"; else start nproc "$n" "${arguments[@]}"; fi
  end
  expect_rc_of_job 3
  grep -q "\"$fault\"" "$run_dir/run.json" || fail "run.json: $(cat "$run_dir/run.json")"
  [ "$i" -eq 0 ] || expect_err '^resumed epoch '
  await none_with "$run_dir"
done
run "$REDUCE_ALL" "${train[@]}" --save-every '64 samples' --resume auto --run-dir "$run_dir"
expect_rc 0
expect_err '^resumed epoch '
[ "$(grep '^digest ' "$folder/out")" = "$whole" ] || fail "expected $whole"
