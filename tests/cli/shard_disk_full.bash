#!/usr/bin/env bash
# A disk that fills up while packing: one message, exit code 3, nothing left, and the old folder unchanged. Skipped if
# no small file system can be mounted.
. "$(dirname "$0")/shard_lib.bash"
# A full stdout is an error, too; output to other places gets there.
made synth images --out "$folder/d" --samples 40 --classes 4
for words in --version --help 'shard stat --help' "shard stat $folder/d" "shard stat $folder/d --json" "shard verify $folder/d" \
  "shard head $folder/d" "shard bench $folder/d --seconds 0.05 --json $folder/b.json" \
  "shard synth toy --out $folder/made --samples 20"; do
  # shellcheck disable=SC2086  # words are words
  run_full "$REDUCE_ALL" $words
  expect_full
done
grep -q lockstep.shard_bench "$folder/b.json" || fail "no figures in the file"
made verify "$folder/made"

mkdir "$folder/small"
mount -t tmpfs -o size=1m none "$folder/small" 2>/dev/null || { echo "cannot mount a small file system"; exit 77; }
trap 'umount "$folder/small"; rm -rf "$folder"' EXIT

made synth toy --out "$folder/small/old" --samples 100
cp -r "$folder/small/old" "$folder/copy"
full=(shard synth digits --samples 20000 --shard-size 4M --chunk-size 1M)
launch 2 "${full[@]}" --out "$folder/small/new"
expect_rc 3
expect_one_error
expect_err "small/new': No space left"
expect_err '--out'
expect_err 'fix: '
[ "$(ls "$folder/small")" = old ] || fail "something is left: $(ls "$folder/small")"
run "$REDUCE_ALL" "${full[@]}" --out "$folder/small/old" --force
expect_rc 3
expect_same "$folder/small/old" "$folder/copy"

# A copy without enough room does not begin.
made synth digits --out "$folder/large" --samples 4000 --compress none
launch 2 shard bench "$folder/large" --stage "$folder/small/local"
expect_rc 3
expect_one_error
expect_err 'no room for the set'
[ -z "$(ls "$folder/small/local")" ] || fail "something is left: $(find "$folder/small/local")"

# A limit of file sizes is the same error as a full disk. So is a limit of descriptors if a launcher has to start.
run bash -c 'ulimit -f 100; "$@"' bash "$REDUCE_ALL" shard synth digits --samples 4000 --out "$folder/long"
expect_rc 3
expect_one_error
expect_err 'File too large'
[ -z "$(find "$folder" -maxdepth 1 -name 'long*')" ] || fail "something is left of a set"
run bash -c 'ulimit -n 6; "$@"' bash "$REDUCE_ALL" shard verify "$folder/copy" --nproc 2
expect_rc 3
expect_err 'ulimit -n'

# A full disk does not abort a measurement.
head -c 2M /dev/zero >"$folder/small/fill" 2>/dev/null
launch 2 shard bench "$folder/copy" --seconds 0.1 --json "$folder/small/b.json"
expect_rc 3
expect_one_error
expect_err 'No space left'
grep -q MPI_ABORT "$folder/err" && fail "aborted"
exit 0
