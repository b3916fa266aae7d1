#!/usr/bin/env bash
# A disk that fills up during a run: one message with the path, exit code 3 at once, and the last good file untouched.
# Skipped if no small file system can be mounted.
. "$(dirname "$0")/lib.bash"
mkdir "$folder/small"
mount -t tmpfs -o size=16k none "$folder/small" 2>/dev/null || { echo "cannot mount a small file system"; exit 77; }
trap 'umount "$folder/small"; rm -rf "$folder"' EXIT

SECONDS=0
launch 2 -b 8 -e 64K -n 10 --timeout 120s --json "$folder/small/r.json"
[ "$SECONDS" -lt 60 ] || fail "the ranks did not leave at once"
expect_rc 3
expect_one_error
expect_err "rank 0 .*$folder/small/r.json': No space left"
[ "$(ls "$folder/small")" = r.json ] || fail "a temporary file is left"
grep -q '"complete"' "$folder/small/r.json" || fail "the file of the rows before is gone"
