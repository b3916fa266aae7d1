#!/usr/bin/env bash
# resources.bash FOLDER...: what ptxas said of the kernels compiled there: none keeps registers in memory (spills, stack), and
# none takes more registers than leave a multiprocessor enough threads. Prints the table.
set -uo pipefail
most=64 # of 65536 for four blocks of 256 threads
# Three blocks of those which hold gradients of eight channels in floats, beside four numbers of each channel, and of those
# which hold several rows at once.
most_of_several=80
table=$(find "$@" -name '*.resources' -exec cat {} + | awk '
  /Compiling entry function/ { split($0, part, "\047"); name = part[2]; arch = part[4] }
  /bytes stack frame/ { stack = $1; spills = $5 + $9 }
  /Used [0-9]+ registers/ { match($0, /Used [0-9]+/); print arch, substr($0, RSTART + 5, RLENGTH - 5), stack, spills, name }' |
  c++filt | sed -E 's/lockstep::([a-z_]+::)*//g; s/void run_on_device<(.*)>\(.*/\1/' | sort -u)
[ -n "$table" ] || { echo "no kernel was compiled in $*"; exit 1; }
printf '%s\n' "arch registers stack spills kernel" "$table"
# What CUDA 13.0 makes of these for GPUs newer than sm_90 keeps a few bytes in memory, or takes a register or two more, as
# 12.4 does for sm_90.
few_bytes='ForEach<(AddSegments<b?float16> |MoveStatistics)>|PartialMoments<float>'
awk -v most="$most" -v most_of_several="$most_of_several" -v few_bytes="^($few_bytes)" '
  { architecture = substr($1, 4) + 0
    is_newer = architecture > 90
    name = $5 " " $6 " " $7
    allowed = name ~ /^(PartialGradients<float>|Normalize(Backward)?<|ForEach<HalvedMaximaBackward<float>)/ || architecture >= 90 && name ~ /(Moments<|Measure<[A-Za-z0-9]+, )float>/ ? most_of_several : most
    bytes = is_newer && name ~ few_bytes ? 8 : 0 }
  $2 > allowed || $3 > bytes || $4 > 4 * bytes { print "too much: " $0; bad = 1 } END { exit bad }' <<<"$table"
