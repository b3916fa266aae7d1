#!/usr/bin/env bash
# Wrong usage and bad places: one message with the way out, exit code 2, and nothing touched.
. "$(dirname "$0")/shard_lib.bash"
d=$folder/d

# refuse MESSAGE ARGUMENTS...: alone, and once under a launcher.
refuse() {
  local message=$1
  shift
  shard "$@"
  expect_rc 2
  expect_one_error
  expect_err "$message"
}
refuse_together() {
  refuse "$@"
  shift
  launch 3 shard "$@"
  expect_rc 2
  expect_one_error
}

refuse 'a verb is missing'
refuse "did you mean 'verify'" veriyf "$d"
refuse "did you mean 'mnist'" import mnits "$d" --out "$d"
refuse "did you mean 'digits'" synth digit --out "$d"
refuse "did you mean '--samples'" synth digits --out "$d" --sample 3
refuse "did you mean 'zstd'" synth digits --out "$d" --compress zst
refuse 'PATH is missing' import mnist --out "$d"
refuse "unexpected argument 'e'" stat "$d" e
refuse '--out is missing' synth digits
refuse 'needs a value' synth digits --out
refuse_together 'manifest' stat "$folder/nothing"
refuse_together 'manifest' verify "$folder/nothing"
refuse_together 'manifest' bench "$folder/nothing"

run "$REDUCE_ALL" shrad
expect_rc 2
expect_err "did you mean 'shard'"
for words in --help --version 'shard --help' 'shard import --help' 'shard bench --help'; do
  # shellcheck disable=SC2086  # words are words
  run "$REDUCE_ALL" $words
  expect_rc 0
  [ -s "$folder/err" ] && fail "nothing belongs on stderr"
  cp "$folder/out" "$folder/alone"
  # shellcheck disable=SC2086
  launch 2 $words
  expect_rc 0
  cmp -s "$folder/alone" "$folder/out" || fail "$words differs under the launcher"
done
launch 2 shard synth toy --out "$d" --nproc 3
expect_rc 2
expect_err 'started 2 ranks already'

# What is there stays as it is without --force, and is replaced as a whole with it.
made synth toy --out "$d" --samples 64
cp -r "$d" "$folder/copy"
refuse_together 'exist|there' synth toy --out "$d" --samples 32
expect_same "$d" "$folder/copy"
made synth toy --out "$d" --samples 32 --force
made stat "$d"
expect_out 'train +32 '
[ "$(find "$folder" -maxdepth 1 -name 'd*' | wc -l)" -eq 1 ] || fail "something is left beside the folder"

refuse_together '--out|none' synth toy --out "$folder/none/d"
echo x >"$folder/file"
refuse '--out|file' synth toy --out "$folder/file/d"
refuse 'cannot write' bench "$d" --json "$folder/none/b.json"
rm -r "$folder/copy" && cp -r "$d" "$folder/copy"
refuse_together 'in a set of shards' bench "$d" --seconds 0.1 --json "$d/manifest.json"
refuse 'in a set of shards' bench "$d" --seconds 0.1 --json "$d/b.json"
expect_same "$d" "$folder/copy"
refuse 'crop' bench "$d" --augment crop:8
if [ "$(id -u)" -ne 0 ]; then
  mkdir -m 500 "$folder/locked"
  refuse '--out|locked' synth toy --out "$folder/locked/d"
fi
refuse '--shard-size' synth toy --out "$folder/e" --chunk-size 1 --shard-size 1
refuse '[0-9]{8} shards .*--shard-size' synth toy --out "$folder/e" --samples 281474976710656 --val 0.5
refuse '--chunk-size' synth toy --out "$folder/e" --chunk-size 1T --shard-size 1T
refuse '--seconds' bench "$d" --seconds 1e308
refuse 'its folder' import mnist "$folder/file" --out "$folder/e"
refuse 'csv, hdf5, npy' import mnist "$folder" --out "$folder/e" --no-classes
refuse '--users' synth ratings --out "$folder/e" --users 2147483648
mkdir "$folder/empty"
: >"$folder/empty/manifest.json"
refuse 'fix: ' stat "$folder/empty"

# Names of others do not steer the terminal: neither those of the command line nor those in a set.
esc=$'\x1b[2J' csi=$'\xc2\x9b31m' bidi=$'\xe2\x80\xae'
refuse "manifest" stat "$folder/$esc$csi$bidi"
expect_err '\\x1b\[2J\\u009b31m\\u202e'
mkdir -p "$folder/i/$csi" "$folder/i/b"
printf 'P6 1 1 255\nabc' | tee "$folder/i/$csi/a.ppm" >"$folder/i/b/a.ppm"
made import images "$folder/i" --out "$folder/$esc"
expect_out '\\x1b'
made stat "$folder/$esc"
expect_out '\\u009b31m'
made stat "$folder/$esc" --json
if command -v python3 >/dev/null; then
  python3 -c "import json, sys; sys.exit('\\\\u009b' not in json.dumps(json.load(open('$folder/out'))))" ||
    fail "no JSON"
fi
mv "$folder/$esc/train-00000.h5" "$folder/$esc/$csi.h5"
shard verify "$folder/$esc"
expect_rc 1
expect_out '\\u009b31m.h5: surplus'
LC_ALL=C grep -q $'[\x1b\x9b]' "$folder/out" "$folder/err" && fail "control characters are printed"

# A process that has no descriptors left says nothing about the set.
n_told=0
for limit in $(seq 3 12); do
  run bash -c 'ulimit -n "$1" && shift && exec "$@"' bash "$limit" "$REDUCE_ALL" shard verify "$d"
  grep -q 'is damaged' "$folder/out" && fail "called damaged with $limit descriptors"
  grep -q 'error: .*cannot .*open files' "$folder/err" || continue
  n_told=$((n_told + 1))
  expect_rc 3
  expect_err 'fix: .*ulimit -n'
done
# A sanitizer has descriptors of its own.
[ "$n_told" -gt 0 ] || ldd "$REDUCE_ALL" | grep -q 'lib[a-z]*san\.' || fail "no limit was met within the program"

# What root may do, nobody may not.
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null && command -v prlimit >/dev/null; then
  chmod 755 "$folder"
  chmod a+x "$(dirname "$folder")"
  mkdir -m 777 "$folder/nobody"
  chmod 700 "$d"
  as_nobody() { run env TMPDIR="$folder/nobody" setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
  program=$folder/program  # nobody may not look into every folder that a program is built in, /root for one
  cp "$REDUCE_ALL" "$program"
  as_nobody env "$program" --version
  [ "$rc" -eq 0 ] || exit 0  # nor where temporary files are
  mkdir -m 1777 "$folder/all"
  made synth toy --out "$folder/all/of-root" --samples 64
  as_nobody "$program" shard synth toy --out "$folder/all/of-root" --samples 10000000 --force
  expect_rc 2
  expect_one_error
  expect_err "cannot be replaced: it is another user's, in a folder for all"
  as_nobody "$program" shard stat "$d"
  expect_rc 2
  expect_err 'Permission denied'
  chmod 755 "$d"
  as_nobody prlimit --nproc=1 "$program" shard bench "$d" --seconds 0.1
  expect_rc 3
  expect_one_error
  expect_err "cannot start the watchdog's thread: "
  as_nobody prlimit --nproc=1 "$program" shard bench "$d" --threads 4 --seconds 0.1 --timeout 0
  grep -q 'pmix_progress_thread_start failed' "$folder/err" && exit 0  # Open MPI 5 starts threads of its own, and fails first
  expect_rc 3
  expect_one_error
  expect_err 'cannot start thread 1 of 4'
  expect_err 'fix: '
fi
