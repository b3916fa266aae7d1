#!/usr/bin/env bash
# save.bash slow|long|lost|back|asked: a checkpoint is saved in the background to a disk that is slow, or too slow; that fails, for
# good or for a moment; that is slow when SIGTERM comes.
. "$(dirname "$0")/../cli/lib.bash"
seed=$((RANDOM * 32768 + RANDOM + 1))
# shellcheck disable=SC2046  # process ids of our own making
trap 'kill -KILL $(ranks_with "$seed") 2>/dev/null; rm -rf "$folder"' EXIT
cd "$folder" || exit 1
digits=("$REDUCE_ALL" train digits --synthetic-samples 512 --batch 32 --val-split '' --threads 1 --deterministic --digest
  --seed "$seed")
on_disk=(env LD_PRELOAD="$SLOW_DISK_LIBRARY")
# value KEY STEP: of the line of the log about that save.
value() { sed -n "s/.*\"kind\":\"save\".*\"step\":$2,.*\"$1\":\\([0-9.e-]*\\).*/\\1/p" r/log.jsonl; }
holds() { awk "BEGIN { exit !($1) }"; }

case $1 in
  slow)
    for n in 1 2; do
      rm -rf r
      run "${digits[@]}" --epochs 8 --run-dir "whole$n" --nproc "$n"
      expect_rc 0
      whole=$(grep '^digest ' out)
      run "${on_disk[@]}" SLOW_DISK_MS=100 "${digits[@]}" --epochs 8 --save-every '2048 samples' --run-dir r --nproc "$n"
      expect_rc 0
      [ "$(grep '^digest ' out)" = "$whole" ] || fail "another result than $whole"
      # The last one is waited for, so the disk is slow; the one before is not.
      holds "$(value stall_s 128) >= 0.1 && $(value stall_s 128) > 0.7 * $(value time_s 128)" ||
        fail "not waited for: $(grep save r/log.jsonl)"
      holds "$(value time_s 64) >= 0.1 && $(value stall_s 64) < 0.5 * $(value time_s 64)" ||
        fail "training stood still: $(grep save r/log.jsonl)"
      run "$REDUCE_ALL" ckpt verify r
      expect_rc 0
      [ "$(grep -c 'is whole' out)" -eq 2 ] || fail "not both"
    done
    ;;
  long) # three waits one after another, longer than --timeout: beyond that a disk is given 1 s for 14.4 MB
    run "${on_disk[@]}" SLOW_DISK_MS=1010 "${digits[@]}" --epochs 1 --save-every 1 --run-dir r --nproc 2 --timeout 3s
    expect_rc 0
    run "${on_disk[@]}" SLOW_DISK_MS=9000 "${digits[@]}" --epochs 1 --save-every 1 --run-dir s --nproc 2 --timeout 3s
    expect_rc 4
    expect_err 'stalled: no progress for 4 s in phase save'
    ;;
  lost)
    run "${on_disk[@]}" SLOW_DISK_FAILS=1000 "${digits[@]}" --epochs 4 --save-every '1024 samples' --run-dir r --nproc 2
    expect_rc 3
    expect_one_error
    expect_err '^warning: no checkpoint after step 32: a checkpoint cannot be written: .*Input/output error'
    expect_out '^failed after 4 epochs, 64 steps'
    [ -z "$(ls -A r/checkpoints)" ] || fail "left: $(ls -A r/checkpoints)"
    [ -s r/weights.h5 ] || fail "no weights"
    ;;
  back) # what does not get over three failures does not get over a thousand, as `lost` shows
    run "${on_disk[@]}" SLOW_DISK_FAILS=3 "${digits[@]}" --epochs 4 --save-every '1024 samples' --run-dir r --nproc 2
    expect_rc 0
    ! grep -qE 'no checkpoint|error:' err || fail "told"
    [ "$(echo $(ls r/checkpoints))" = 'step-000000032 step-000000064' ] || fail "left: $(ls -A r/checkpoints)"
    run "$REDUCE_ALL" ckpt verify r
    expect_rc 0
    [ "$(grep -c 'is whole' out)" -eq 2 ] || fail "not both"
    ;;
  asked)
    "${on_disk[@]}" SLOW_DISK_MS=500 "${digits[@]}" --epochs 300 --save-every '1024 samples' --run-dir r --nproc 2 >out 2>err &
    job=$!
    await compgen -G 'r/checkpoints/*.tmp-*/rank-00001.h5' >/dev/null
    kill -TERM "$job"
    wait "$job"
    rc=$?
    expect_rc 85
    [ "$(grep -c '"kind":"save"' r/log.jsonl)" -eq 2 ] || fail "not the one under way and the last: $(grep save r/log.jsonl)"
    [ -z "$(ls -A r/checkpoints | grep -v '^step-[0-9]*$')" ] || fail "left: $(ls -A r/checkpoints)"
    run "$REDUCE_ALL" ckpt verify r
    expect_rc 0
    none_with "$seed" || fail "processes: $(ranks_with "$seed")"
    ;;
esac
