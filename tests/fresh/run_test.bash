#!/usr/bin/env bash
# What tests/fresh/run does where no system can be made, and when it is interrupted, twice too: status 3 or 128 + n, one
# message, nothing left. `unshare` is a stand-in, so no system is made.
set -u
run=$(dirname -- "$(readlink -f -- "$0")")/run
{ [ "$(id -u)" -eq 0 ] && type apt-get; } >/dev/null 2>&1 || { echo "needs root and apt-get"; exit 77; }
git -C "$(dirname "$run")" -c safe.directory='*' rev-parse HEAD >/dev/null 2>&1 || { echo "needs a git checkout"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/bin" "$folder/tmp"
export TMPDIR=$folder/tmp PATH=$folder/bin:$PATH
printf '#!/bin/sh\n' >"$folder/bin/mmdebstrap"
chmod +x "$folder/bin/mmdebstrap"

# stand_in TEXT: what `unshare` does; its last arguments are those of run's.
stand_in() { printf '#!/bin/bash\n%s\n' "$1" >"$folder/bin/unshare" && chmod +x "$folder/bin/unshare"; }

fail() {
  printf 'FAILED: %s\n' "$*"
  cat "$folder/err"
  exit 1
}

# expect STATUS GOT MESSAGE
expect() {
  [ "$2" -eq "$1" ] || fail "exit status $2 instead of $1"
  grep -q -- "$3" "$folder/err" || [ -z "$3" ] || fail "no message with '$3'"
  [ -z "$(ls -A "$folder/tmp")" ] || fail "left: $(ls -A "$folder/tmp")"
}

stand_in 'exit 0'
(cd / && TMPDIR=$folder/none "$run" 12 -- true) 2>"$folder/err"
expect 3 $? 'set TMPDIR'
"$run" 12 -- true 2>"$folder/err"
expect 0 $? ''

stand_in 'exit 1'
"$run" 12 -- true 2>"$folder/err"
expect 3 $? 'may not mount'

# Many files, so that removing them takes longer than the second interrupt needs to come.
stand_in 'for word; do case $word in */fresh-debian*) work=$word ;; esac; done
[ "${work:-}" ] || exit 0
mkdir "$work/many" && (cd "$work/many" && seq 5000 | xargs touch) && touch "$work/../../started"
[ -e "$work/../../ends" ] || exec sleep 60'

# start RELEASE...: run in a group of its own, in which an interrupt is not ignored, as $!; waits until files are there.
start() {
  rm -f "$folder/started"
  set -m
  "$run" "$@" -- true 2>"$folder/err" &
  set +m
  until [ -e "$folder/started" ]; do sleep 0.01; done
}

for signal in HUP INT TERM; do
  start 12
  kill -s $signal -- "-$!"
  sleep 0.03
  kill -s $signal -- "-$!" 2>/dev/null
  wait $!
  status=$?
  expect $((128 + $(kill -l $signal))) $status ''
done

# An interrupt between two releases, while the first is removed, is not forgotten.
touch "$folder/ends"
start 12 13
sleep 0.02
kill -s TERM -- "-$!"
wait $!
expect 143 $? ''
