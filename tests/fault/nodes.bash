#!/usr/bin/env bash
# nodes.bash: `lockstep train` on two nodes, which are namespaces of this machine, with two ranks each. The result
# equals that of one node. If a bit flips on one node, that is found, and the run goes back to the last state that was
# equal on both. A stopped rank is named once for all, with the last activity of the ranks of both nodes. The next run
# removes that record. Skipped if namespaces cannot be made, or with another MPI than Open MPI 4.
. "$(dirname "$0")/ranks.bash"
. "$(dirname "$0")/two_nodes.bash"
reason=$(why_no_nodes)
[ -z "$reason" ] || { echo "$reason"; exit 77; }

digits=(train digits --synthetic-samples 512 --batch 32 --epochs 2 --deterministic --threads 1 --digest)
run "$REDUCE_ALL" "${digits[@]}" --run-dir "$folder/whole"
expect_rc 0
whole=$(grep '^digest ' "$folder/out")
on_nodes 4 "${digits[@]}" --run-dir "$folder/two" --save-every 1
end
expect_rc 0
[ "$(grep '^digest ' "$folder/out")" = "$whole" ] || fail "another result than $whole"
expect_err '^ranks +4 ranks on 2 nodes'
run "$REDUCE_ALL" ckpt verify "$folder/two"
expect_rc 0

# Nodes are compared at every 100th step. Three checkpoints are kept, one every 20 steps, and all except one are newer
# than the last comparison. A rank checks its own writes in the first step and in each step after a comparison. So only
# a comparison of the nodes finds the flip.
toy=(train toy 11 --synthetic-samples 640 --batch 32 --deterministic --threads 1 --digest --save-every 1)
run "$REDUCE_ALL" "${toy[@]}" --run-dir "$folder/sound"
expect_rc 0
sound=$(grep '^digest ' "$folder/out")
on_nodes 4 "${toy[@]}" --max-steps 20 --run-dir "$run_dir" --inject late:0:training:1ms
end
expect_rc 0
on_nodes 4 "${toy[@]}" --resume auto --run-dir "$run_dir" --inject flip:weight:2:150
end
expect_rc 0
expect_err "^warning: after step 20[0-9]: parameters of 'weight' differ between nodes \(rank [0-3] on node [01]\); going back to"
expect_err "^warning: checkpoint '$run_dir/checkpoints/step-[0-9]+' may contain the change"
[ "$(grep '^digest ' "$folder/out")" = "$sound" ] || fail "another result than $sound"
compgen -G "$run_dir/checkpoints/*.suspect" >/dev/null || fail "none is set aside: $(ls "$run_dir/checkpoints")"
run "$REDUCE_ALL" ckpt prune "$run_dir" --keep 1
expect_rc 0
! compgen -G "$run_dir/checkpoints/*.suspect" >/dev/null || fail "still there: $(ls "$run_dir/checkpoints")"
rm -rf "$run_dir"

on_nodes 4 train toy 1 --synthetic-samples 30000 --batch 32 --save-every 0 --timeout 2s --run-dir "$run_dir" --inject stop:3:training:7
begin=$SECONDS
end
[ $((SECONDS - begin)) -le 30 ] || fail "took $((SECONDS - begin)) s"
expect_rc 4
expect_one_error
expect_err "^  rank 3 on node-b \(pid [0-9]+\): stopped by a signal .* last seen in phase training, step 7"
for node in a b; do
  [ "$(grep -c "^node-$node " "$run_dir/stalled-node-$node.txt")" -eq 2 ] || fail "not of two ranks: $(ls "$run_dir")"
done
await none_with "$run_dir"

run "$REDUCE_ALL" train toy 1 --batch 32 --resume auto --run-dir "$run_dir"
expect_rc 0
! compgen -G "$run_dir/stalled-*" >/dev/null || fail "left: $(ls "$run_dir")"
