#!/usr/bin/env bash
# resources.bash FOLDER...: what ptxas said of the kernels compiled there: none keeps registers in memory (spills, stack), and
# none takes more registers than leave a multiprocessor enough threads. Prints the table.
set -uo pipefail
most=64 # of 65536 for four blocks of 256 threads
# Three blocks of those which hold gradients of eight channels in floats, beside four numbers of each channel.
most_of_floats=80
table=$(find "$@" -name '*.resources' -exec cat {} + | awk '
  /Compiling entry function/ { split($0, part, "\047"); name = part[2]; arch = part[4] }
  /bytes stack frame/ { stack = $1; spills = $5 + $9 }
  /Used [0-9]+ registers/ { match($0, /Used [0-9]+/); print arch, substr($0, RSTART + 5, RLENGTH - 5), stack, spills, name }' |
  c++filt | sed -E 's/lockstep::([a-z_]+::)*//g; s/void run_on_device<(.*)>\(.*/\1/' | sort -u)
[ -n "$table" ] || { echo "no kernel was compiled in $*"; exit 1; }
printf '%s\n' "arch registers stack spills kernel" "$table"
awk -v most="$most" -v most_of_floats="$most_of_floats" '
  { allowed = $5 ~ /^(PartialGradients|NormalizeBackward)<float>/ ? most_of_floats : most }
  $2 > allowed || $3 > 0 || $4 > 0 { print "too much: " $0; bad = 1 } END { exit bad }' <<<"$table"
