#!/usr/bin/env bash
# Messages of a launched program about wrong usage, alone and on three ranks; and of a process without descriptors, or
# of user nobody. tests/program has what is refused.
. "$(dirname "$0")/shard_lib.bash"
d=$folder/d

shard stat "$folder/nothing"
expect_rc 2
expect_one_error
launch 3 shard verify "$folder/nothing"
expect_rc 2
expect_one_error
expect_err manifest
launch 2 shard synth toy --out "$d" --nproc 3
expect_rc 2
expect_one_error
expect_err 'started 2 ranks already'
run "$REDUCE_ALL" shard import --help
expect_rc 0
[ -s "$folder/err" ] && fail "nothing belongs on stderr"
cp "$folder/out" "$folder/alone"
launch 2 shard import --help
expect_rc 0
cmp -s "$folder/alone" "$folder/out" || fail "the help differs under the launcher"
made synth toy --out "$d" --samples 64

# A process without free descriptors says nothing about the set.
n_told=0
for limit in $(seq 3 12); do
  run bash -c 'ulimit -n "$1" && shift && exec "$@"' bash "$limit" "$REDUCE_ALL" shard verify "$d"
  grep -q 'is damaged' "$folder/out" && fail "called damaged with $limit descriptors"
  grep -q 'error: .*cannot .*open files' "$folder/err" || continue
  n_told=$((n_told + 1))
  expect_rc 3
  expect_err 'fix: .*ulimit -n'
done
# A sanitizer has its own descriptors.
[ "$n_told" -gt 0 ] || ldd "$REDUCE_ALL" | grep -q 'lib[a-z]*san\.' || fail "no limit was met within the program"

# Some things that root may do, nobody may not.
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null && command -v prlimit >/dev/null; then
  chmod 755 "$folder"
  chmod a+x "$(dirname "$folder")"
  mkdir -m 777 "$folder/nobody"
  chmod 700 "$d"
  as_nobody() { run env TMPDIR="$folder/nobody" setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
  program=$folder/program  # nobody may not look into every folder that a program is built in, such as /root
  cp "$REDUCE_ALL" "$program"
  as_nobody env "$program" --version
  [ "$rc" -eq 0 ] || exit 0  # nor into the folder of temporary files
  mkdir -m 1777 "$folder/all"
  made synth toy --out "$folder/all/of-root" --samples 64
  as_nobody "$program" shard synth toy --out "$folder/all/of-root" --samples 10000000 --force
  expect_rc 2
  expect_one_error
  expect_err "cannot be replaced: it is owned by another user, in a shared folder"
  as_nobody "$program" shard stat "$d"
  expect_rc 2
  expect_err 'Permission denied'
  chmod 755 "$d"
  as_nobody prlimit --nproc=1 "$program" shard bench "$d" --seconds 0.1
  expect_rc 3
  expect_one_error
  expect_err "cannot start the watchdog's thread: "
  as_nobody prlimit --nproc=1 "$program" shard bench "$d" --threads 4 --seconds 0.1 --timeout 0
  grep -q 'pmix_progress_thread_start failed' "$folder/err" && exit 0  # Open MPI 5 starts its own threads, and fails first
  expect_rc 3
  expect_one_error
  expect_err 'cannot start thread 1 of 4'
  expect_err 'fix: '
fi
