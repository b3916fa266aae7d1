#!/usr/bin/env bash
# Tests tests/fresh/run if no system can be made, and if it is interrupted, also twice: status 3 or 128 + n, one
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

# stand_in TEXT: defines what `unshare` does. Its last arguments are run's.
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

# Removing waits until it may continue.
touch "$folder/may_go_on"
printf '#!/bin/bash\n%s\n' "for word; do case \$word in */fresh-debian*) touch '$folder/removing' ;; esac; done
until [ -e '$folder/may_go_on' ]; do sleep 0.01; done
exec $(command -v rm) \"\$@\"" >"$folder/bin/rm"
chmod +x "$folder/bin/rm"
stand_in 'for word; do case $word in */fresh-debian*) work=$word ;; esac; done
[ "${work:-}" ] || exit 0
touch "$work/file" "$work/../../started"
[ -e "$work/../../ends" ] || exec sleep 60'

await() { until [ -e "$folder/$1" ]; do sleep 0.01; done; }

# start RELEASE...: starts run as $!, in its own process group, in which an interrupt is not ignored. Waits until a file
# exists.
start() {
  rm -f "$folder/started" "$folder/removing" "$folder/may_go_on"
  set -m
  "$run" "$@" -- true 2>"$folder/err" &
  set +m
  await started
}

# interrupt SIGNAL: sends it while files are removed.
interrupt() {
  await removing
  kill -s "$1" -- "-$!"
  touch "$folder/may_go_on"
}

for signal in HUP INT TERM; do
  start 12
  kill -s $signal -- "-$!"
  interrupt $signal
  wait $!
  status=$?
  expect $((128 + $(kill -l $signal))) $status ''
done

# An interrupt between two releases, while the first is removed, is not forgotten.
touch "$folder/ends"
start 12 13
interrupt TERM
wait $!
expect 143 $? ''
