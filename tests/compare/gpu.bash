#!/usr/bin/env bash
# gpu.bash FOLDER: tests the comparison with PyTorch on GPUs. It says that there is none, and makes its table from
# made-up measurements. With programs that play the GPU, PyTorch and lockstep, it tests a call, and another one that
# continues.
. "$(dirname "$0")/../cli/lib.bash"
compare=$1
# expect_row LINE: expects it in a table.
expect_row() { grep -qxF -- "$1" "$folder/out" || fail "no row '$1'"; }

python=$(python3 -c 'import sys; print(sys.executable)') || { echo "skipped: no python3"; exit 77; }

mkdir "$folder/empty"
run env PATH="$folder/empty" "$python" "$compare/run" --out "$folder/none"
expect_rc 77
expect_out '^skipped: no GPU: there is no nvidia-smi$'
[ ! -e "$folder/none" ] || fail "leaves a folder"
for wrong in "--minutes 0" "--work nothing" "--no-such-flag"; do
  # shellcheck disable=SC2086  # words
  run "$python" "$compare/run" $wrong
  expect_rc 2
done
run "$python" "$compare/torch_gpu.py" --work "toy, batch 32" --precision bf16
expect_rc 2
"$python" -c 'import torch' 2>/dev/null || {
  run "$python" "$compare/torch_gpu.py" --work "toy, batch 32" --precision bf16 --mode eager
  expect_rc 77
  expect_out '^skipped: no GPU for PyTorch: '
}
run "$python" "$compare/table.py" "$folder/none.jsonl"
expect_rc 2

# 256 samples in 40 ms are 6,400/s; eager 64 ms, compiled 50 ms: 5,120/s, so 1.25 times. Fewer than 5 windows do not
# count. Memory: 368 MB at 3.68 TB/s are 100 us, 10,000/s; the products' 24.29 GFLOP take 24.29 us at 1000 TFLOP/s.
cat >"$folder/results.jsonl" <<'EOF'
{"kind":"copy","what":"device to device, read and written","GBps":3680}
{"kind":"copy","what":"pinned host to device","GBps":50}
{"kind":"product","what":"8192","type":"bfloat16","TFLOPs":1000}
{"kind":"step","work":"ResNet-50@224, batch 256","precision":"bf16","who":"lockstep","config":"","window_s":[0.09,0.04,0.04,0.03,0.05]}
{"kind":"step","work":"ResNet-50@224, batch 256","precision":"bf16","who":"torch","config":"eager","window_s":[0.064,0.064,0.064,0.064,0.01]}
{"kind":"step","work":"ResNet-50@224, batch 256","precision":"bf16","who":"torch","config":"default","window_s":[0.05,0.05,0.05,0.05,0.05,0.9]}
{"kind":"step","work":"ResNet-50@224, batch 256","precision":"bf16","who":"torch","config":"max-autotune","window_s":[0.001,0.001]}
{"kind":"step","work":"ResNet-50@224, batch 256","precision":"f16","who":"lockstep","config":"","window_s":[0.04,0.04,0.04,0.04,0.04]}
{"kind":"unavailable","work":"toy, batch 32","precision":"bf16","who":"torch","config":"eager","reason":"no"}
{"kind":"step","work":"ResNet-50@224, ba
EOF
run "$python" "$compare/table.py" "$folder/results.jsonl"
expect_rc 0
expect_row '| ResNet-50@224, batch 256 | bf16 | 6,400 | 5,120 (default) | 2 | 1.25 | 10,000 | 64% |'
expect_row '| ResNet-50@224, batch 256 | f16 | 6,400 | – | 0 | – | – | – |'
[ "$(wc -l <"$folder/out")" -eq 4 ] || fail "more rows than were measured"

# A played GPU.
mkdir -p "$folder/bin"
printf '#!/bin/bash\necho "GPU 0: played"\n' >"$folder/bin/nvidia-smi"
cat >"$folder/bin/torch" <<'EOF'
#!/bin/bash
[ "$1" = -c ] && exit
[[ "$*" != *max-autotune* ]] || { echo "error: does not compile"; exit 1; }
echo '{"window_s": [0.002, 0.002, 0.002, 0.002, 0.002], "first_s": 1}'
EOF
cat >"$folder/bin/lockstep" <<'EOF'
#!/bin/bash
echo "$*" >>"${0%/*}/calls"
words=$*
folder=${words##*--run-dir }
mkdir "$folder"
echo '{"kind":"final","steady":{"samples_per_s":32000}}' >"$folder/log.jsonl"
EOF
chmod +x "$folder"/bin/*
compare_played() {
  run env PATH="$folder/bin:$PATH" "$python" "$compare/run" --python "$folder/bin/torch" --lockstep "$folder/bin/lockstep" \
    --out "$folder/played" --work "toy, batch 32" "$@"
}
compare_played --minutes 1 # none begins with less than a minute left
expect_rc 3
expect_out '10 measurements are left for another call'
compare_played
expect_rc 0
expect_row '| toy, batch 32 | bf16 | 32,000 | 16,000 (eager) | 3 | 2.00 | – | – |'
expect_row '- toy, batch 32, bf16, torch max-autotune: exit code 1: error: does not compile'
grep -q -- 'train toy --device cuda --precision f32 --batch 32 .*--optimizer sgd --lr 0.001 ' "$folder/bin/calls" || fail "not what was asked for"
n=$(wc -l <"$folder/bin/calls")
[ "$n" -eq 10 ] || fail "$n runs of lockstep, not 5 for each precision"
compare_played
expect_rc 0
[ "$(wc -l <"$folder/bin/calls")" -eq "$n" ] || fail "measures again what has been measured"
