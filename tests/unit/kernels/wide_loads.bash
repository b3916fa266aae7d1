#!/usr/bin/env bash
# wide_loads.bash NVCC SOURCES: that kernels which read whole arrays do so 16 bytes at a time, as PTX has it, which is asked for anew:
# a thread that reads less moves less. Prints the table.
set -euo pipefail
nvcc=$1 src=$2
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
# Kernels of `only` have loads of 16 bytes alone. Kernels of `most` have some, and narrow ones of a few numbers for a block.
only='(Rectify|RectifyBackward|Sum|AddBias|Cast|Normalize)<'
most='((PartialMoments|PartialGradients|NormalizeBackward|PartialSums|NormalizeFeatures(Backward)?|PartialFeatureGradients|SoftmaxCrossEntropy|Update)<|HashPieces$)'
printf '#include "%s"\n' nn/cuda/kernels/kernels.cu nn/ops/{batch,layer}_norm/kernels.cu \
  optim/cuda/{arena,device_rules}.cu >"$folder/kernels.cu"
"$nvcc" -ptx -arch=sm_90 -O3 -DNDEBUG -std=c++20 --expt-relaxed-constexpr -fmad=false -diag-suppress 554,20011,20014 \
  -I"$src" -o "$folder/kernels.ptx" "$folder/kernels.cu"
awk '/\.entry / { name = $0; sub(/.*\.entry /, "", name); sub(/\(.*/, "", name); wide[name] = narrow[name] = 0 }
    /^[[:space:]]*(@%p[0-9]+ )?ld\.global/ {
      n = match($0, /\.v[248]\./) ? substr($0, RSTART + 2, 1) : 1
      match($0, /\.[bfu](8|16|32|64)[[:space:]]/)
      if (n * substr($0, RSTART + 2, RLENGTH - 3) >= 128) ++wide[name]; else ++narrow[name] }
    END { for (name in wide) print wide[name], narrow[name], name }' "$folder/kernels.ptx" | c++filt | sed -E 's/lockstep::([a-z_]+::)*|\(anonymous namespace\):://g; s/void run_on_device<(ForEach<)?(.*)>\(.*/\2/' |
  awk -v only="^$only" -v most="^$most" '
    BEGIN { print "wide narrow kernel" }
    { print; kernel = $0; sub(/^[0-9]+ [0-9]+ /, "", kernel)
      if (kernel ~ only && ($1 == 0 || $2 > 0) || kernel ~ most && $1 == 0) { print "too narrow: " kernel; bad = 1 }
      if (kernel ~ only) ++n_only
      if (kernel ~ most) ++n_most }
    END { if (n_only < 17 || n_most < 43) { print "kernels are missing: " n_only + 0 ", " n_most + 0; bad = 1 } exit bad }'
