#!/usr/bin/env bash
# flip.bash PARAMETER RANK: in `lockstep train` on 2 ranks, one bit of that parameter flips in the memory they share, between
# two steps; exit 1, and the parameter is named with the rank that wrote it.
# flip.bash back [FLAG ...]: with a checkpoint the run goes back to it, and ends with the bits of one in which nothing flipped.
# flip.bash saved: that which is being written when the bit flips is set aside, and the one before it is still there.
# flip.bash unseen: where nobody looks, the result is another one, so it is the bit that bites; and none: without it the run
# succeeds.
. "$(dirname "$0")/ranks.bash"

# The parameters are hashed before the first step, which takes seconds, and looked at before it ends.
train=(train digits --batch 4096 --accumulate 32 --synthetic-samples 4096 --val-split '' --threads 1 --seed 7 --run-dir "$run_dir")

case $1 in
  none)
    start nproc 2 "${train[@]}" --max-steps 1
    end
    expect_rc 0
    ;;
  unseen) # at such a rate parameters stay as they are, so that the bit can be found at any time
    train=(train digits --batch 96 --synthetic-samples 9504 --val-split '' --threads 1 --seed 7 --run-dir "$run_dir" --lr 1e-30
      --deterministic --digest --epochs 1)
    start nproc 2 "${train[@]}"
    end
    expect_rc 0
    whole=$(grep '^digest ' "$folder/out")
    rm -rf "$run_dir"
    start nproc 2 "${train[@]}"
    find_ranks 2
    await has_line '^first step' "$folder/err"
    keep_flipped 0 fc2.weight 7
    end
    expect_rc 0
    [ "$(grep '^digest ' "$folder/out")" != "$whole" ] || fail "the same result"
    ;;
  back)
    train+=(--deterministic --digest --epochs 9 "${@:2}")
    start nproc 2 "${train[@]}" --max-steps 2
    end
    expect_rc 0
    whole=$(grep '^digest ' "$folder/out")
    rm -rf "$run_dir"
    start nproc 2 "${train[@]}" --max-steps 1 --resume auto
    end
    expect_rc 0
    start nproc 2 "${train[@]}" --max-steps 2 --resume auto
    find_ranks 2
    await has_logged '"kind":"resume"'
    flip_bit 0 fc2.weight "$run_dir/checkpoints/step-000000001"
    end
    expect_rc 0
    expect_err "^warning: after step 2: parameters of 'fc2.weight' have changed in memory between two steps \(rank 0 on node 0\); \
going back to $run_dir/checkpoints/step-000000001"
    grep -q '"kind":"resume","epoch":2,"step":1,.*"why":"parameters of ' "$run_dir/log.jsonl" || fail "log: $(cat "$run_dir/log.jsonl")"
    [ "$(grep '^digest ' "$folder/out")" = "$whole" ] || fail "another result than $whole"
    ;;
  saved) # after the hash of step 100, and before it is compared: by the rank that does not look after checkpoints
    train=(train digits --batch 256 --synthetic-samples 30720 --val-split '' --threads 1 --seed 7 --lr 1e-30 --epochs 1
      --save-every '12800 samples' --keep 1 --run-dir "$run_dir")
    export LD_PRELOAD=$SLOW_DISK_LIBRARY SLOW_DISK_MS=300
    start nproc 2 "${train[@]}"
    unset LD_PRELOAD
    find_ranks 2
    await_pause_s=0.005 # a step takes 200 ms
    await compgen -G "$run_dir/checkpoints/step-000000100.tmp-*" >/dev/null
    flip_bit 0 conv1.bias 7
    end
    expect_rc 0
    expect_err "^warning: checkpoint '$run_dir/checkpoints/step-000000100' may hold what has changed"
    expect_err "^warning: after step 10[0-9]: .* \\(rank 1 on node 0\\); going back to $run_dir/checkpoints/step-000000050"
    [ "$(echo $(ls "$run_dir/checkpoints"))" = 'step-000000100.suspect step-000000120' ] || fail "left: $(ls "$run_dir/checkpoints")"
    ;;
  *)
    start nproc 2 "${train[@]}" --max-steps 1
    find_ranks 2
    await has_logged '"kind":"start"'
    flip_bit 0 "$1" 7
    end
    expect_rc 1
    expect_one_error
    expect_err "parameters of '$1' have changed in memory between two steps"
    expect_err "rank $2 on node 0"
    ;;
esac
