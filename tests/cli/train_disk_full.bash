#!/usr/bin/env bash
# A disk that fills up while checkpoints or weights are saved: one message, exit code 3, and a status that says why and
# how far the run was. Earlier files stay unchanged. Skipped if no small file system can be mounted.
. "$(dirname "$0")/lib.bash"
# A full stdout does not stop the training. tests/program has other commands and flags.
run_full "$REDUCE_ALL" train toy 2 --run-dir "$folder/full"
expect_full
grep -q '"state": "finished"' "$folder/full/status.json" || fail "the run has not finished"
run_full "$REDUCE_ALL" --help
expect_full

mkdir "$folder/small"
mount -t tmpfs -o size=8m none "$folder/small" 2>/dev/null || { echo "cannot mount a small file system"; exit 77; }
trap 'umount "$folder/small"; rm -rf "$folder"' EXIT

# Without a free block or inode, the status is still right at the end, because it is overwritten in place.
"$REDUCE_ALL" train toy 1000000 --save-every 0 --save-weights "$folder/w.h5" --run-dir "$folder/small/r" >"$folder/out" 2>"$folder/err" &
job=$!
await has_line '"kind":"train"' "$folder/small/r/log.jsonl"
dd if=/dev/zero of="$folder/small/fill" bs=64k status=none 2>/dev/null
dd if=/dev/zero of="$folder/small/fill2" bs=1k status=none 2>/dev/null
kill -TERM "$job"
wait "$job"
rc=$?
expect_rc 3
expect_one_error
expect_err 'cannot write a checkpoint: .*No space left'
[ -s "$folder/w.h5" ] || fail "no weights, though there was room for them"
grep -q '"state": "failed"' "$folder/small/r/status.json" || fail "status: $(cat "$folder/small/r/status.json")"
rm -r "$folder/small/r" "$folder/small/fill"* "$folder/w.h5"

mkdir "$folder/few"
mount -t tmpfs -o size=8m,nr_inodes=6 none "$folder/few"  # the root, a folder, four files
trap 'umount "$folder/small" "$folder/few"; rm -rf "$folder"' EXIT
run "$REDUCE_ALL" train toy 3 0 --save-weights "$folder/w.h5" --run-dir "$folder/few/r"
expect_rc 0
grep -q '"state": "finished"' "$folder/few/r/status.json" || fail "status: $(cat "$folder/few/r/status.json")"

run "$REDUCE_ALL" train toy 1 --run-dir "$folder/few/none"
expect_rc 3
expect_one_error
expect_err "cannot write a run to '.*none': No space left"
expect_err 'fix: make room there'

# If weights do not fit at all, training does not begin.
dd if=/dev/zero of="$folder/small/fill" bs=1M count=4 status=none
run "$REDUCE_ALL" train digits --synthetic-samples 128 --run-dir "$folder/small/r"
expect_rc 3
expect_one_error
expect_err "no room for weights of 4.8 MB in '$folder/small/r', where 4.* MB are free"
[ "$(ls "$folder/small")" = fill ] || fail "left behind: $(ls "$folder/small")"
rm "$folder/small/fill"

# The same holds for checkpoints.
run "$REDUCE_ALL" train digits --synthetic-samples 128 --save-every 1 --run-dir "$folder/small/r"
expect_rc 3
expect_one_error
expect_err "no room for a checkpoint and weights of 19.2 MB in '$folder/small/r', where 8.* MB are free"

# One checkpoint fits into 14.4 MB, but not a second one beside it. Training continues, and a run can resume from the
# first one.
mkdir "$folder/middle"
mount -t tmpfs -o size=26m none "$folder/middle"
trap 'umount "$folder/small" "$folder/few" "$folder/middle"; rm -rf "$folder"' EXIT
launch 2 train digits --synthetic-samples 128 --epochs 3 --save-every 1 --run-dir "$folder/middle/r"
expect_rc 3
expect_one_error
expect_err '^warning: no checkpoint after step 4: .*No space left'
expect_err '^error: .*cannot write a checkpoint: .*No space left'
expect_err 'fix: '
expect_out '^failed after 3 epochs, 6 steps'
grep -q MPI_ABORT "$folder/err" && fail "aborted"
status=$(cat "$folder/middle/r/status.json")
for member in '"state": "failed"' '"message": ".*No space left' '"step": 6' '"checkpoint": ".*/step-000000002"'; do
  grep -q "$member" <<<"$status" || fail "status lacks $member: $status"
done
[ "$(echo $(ls -A "$folder/middle/r/checkpoints"))" = 'best step-000000002' ] || fail "$(ls -A "$folder/middle/r/checkpoints")"
[ -s "$folder/middle/r/weights.h5" ] || fail "no weights, though there was room for them"
run "$REDUCE_ALL" train digits --synthetic-samples 128 --epochs 3 --save-every 0 --resume auto --run-dir "$folder/middle/r"
expect_rc 3  # its end would be a checkpoint
expect_err "no room for a checkpoint and weights of 19.2 MB in '$folder/middle/r'"
run "$REDUCE_ALL" train digits --synthetic-samples 128 --epochs 3 --save-every 0 --resume "$folder/middle/r" --run-dir "$folder/on"
expect_rc 0
expect_err '^resumed epoch 2, after step 2'
expect_out '^finished after 3 epochs, 6 steps'

# Training continues if nobody reads stderr any more, because the launcher does not notice.
{ "$REDUCE_ALL" train toy 20 1 --run-dir "$folder/unread" --nproc 2 2>&1 >/dev/null || echo "$?" >"$folder/code"; } | true
await has_line '"state": "' "$folder/unread/status.json"
[ ! -e "$folder/code" ] || fail "exit code $(cat "$folder/code") where stderr was closed"
grep -q '"state": "finished"' "$folder/unread/status.json" || fail "status: $(cat "$folder/unread/status.json")"
