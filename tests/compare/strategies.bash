#!/usr/bin/env bash
# strategies.bash FOLDER: tests share/compare/training/run --only strategies with programs that play lockstep and
# PyTorch: its ratios, what is missing, and its files of results.
. "$(dirname "$0")/../cli/lib.bash"
compare=$1
python=$(python3 -c 'import os, sys; sys.exit(len(os.sched_getaffinity(0)) < 2); ' && python3 -c 'import sys; print(sys.executable)') ||
  { echo "skipped: no python3, or a single core"; exit 77; }

# Seconds of a step: ddp 0.2, zero1 0.2, zero2 0.25 (0.8 of its speed); FSDP2 0.5, with resharding 0.6; DDP 0.3.
mkdir -p "$folder/build/bin" "$folder/cache/tcmalloc" "$folder/bin"
touch "$folder/cache/tcmalloc/libtcmalloc_minimal.so.4" # nothing is downloaded
cat >"$folder/build/bin/lockstep" <<'EOF'
#!/bin/bash
[ "$1" != --version ] || { echo "lockstep played" && exit; }
echo "$*" >>"${0%/*}/calls"
words="$* "
value() { local rest=${words#*"$1" }; echo "${rest%% *}"; }
strategy=$(value --strategy) dir=$(value --run-dir)
[[ ${ABSENT:-} != *"$strategy"* ]] || { echo "error: strategy '$strategy' is not in this version" >&2 && exit 2; }
declare -A ms=([ddp]=200 [zero1]=200 [zero2]=250 [fsdp]=200)
mkdir -p "$dir"
echo "{\"kind\":\"final\",\"steady\":{\"step_ms_p50\":${ms[$strategy]}}}" >"$dir/log.jsonl"
EOF
cat >"$folder/bin/torch" <<'EOF'
#!/bin/bash
[ "$1" != -c ] || { echo "PyTorch played" && exit; }
step_s=0.3
case "$*" in
  *'"compile": true'*reshard_after_forward*) echo 'RuntimeError: cannot compile' >&2 && exit 1 ;;
  *'"reshard_after_forward": true'*) step_s=0.6 ;;
  *'"reshard_after_forward": false'*) step_s=0.5 ;;
  *'"compile": true'*) step_s=0.4 ;;
esac
echo "{\"step_s\": $step_s, \"first_s\": 1}"
EOF
chmod +x "$folder/build/bin/lockstep" "$folder/bin/torch"

# compare_played FLAG ...
compare_played() {
  rm -rf "$folder/results" "$folder/build/bin/calls"
  run "$python" "$compare/run" --only strategies --build "$folder/build" --cache "$folder/cache" --results "$folder/results" "$@"
  expect_rc 0
  page=$(echo "$folder"/results/training-*-strategies*.md)
  [ -s "$page" ] && [ -s "${page%.md}.json" ] || fail "no results: $page"
}
# expect_goal GOAL MEASURED VERDICT
expect_goal() { grep -qF -- "| ResNet-50@224, f32, 2 ranks: $1 | $2 | $3 |" "$folder/out" || fail "no goal $*"; }
expect_row() { grep -qF -- "$1" "$page" || fail "no row $1 in $(cat "$page")"; }

compare_played --python "$folder/bin/torch" --repeats 2
expect_goal 'zero1 >= 0.95 times ddp' '1.00 (1.00 to 1.00)' met
expect_goal 'zero2 >= 0.95 times ddp' '0.80 (0.80 to 0.80)' 'NOT met'
expect_goal 'fsdp >= 2.0 times PyTorch FSDP2' '2.50 (2.50 to 2.50)' met
expect_row '| ResNet-50@224, f32 | 2 | PyTorch FSDP2 | 32 | 0.4 | reshard_after_forward=False, foreach'
expect_row '| ResNet-50@224, f32 | 2 | PyTorch DDP | 53.33 | 0.6667 | eager'
expect_row '- ResNet-50@224, f32, 2 ranks, reshard_after_forward=True, foreach, compile, tcmalloc: exit code 1: '
[ "$(grep -c -- '--strategy fsdp' "$folder/build/bin/calls")" -eq 3 ] || fail "fsdp does not take turns: $(cat "$folder/build/bin/calls")"

# What the program does not have, and no PyTorch.
printf '#!/bin/sh\necho "ModuleNotFoundError: no torch" >&2\nexit 1\n' >"$folder/bin/torch"
ABSENT='zero2 fsdp' compare_played --python "$folder/bin/torch" --quick
expect_err "^skipped: PyTorch's FSDP2 and DDP, because there is no PyTorch: .*no torch"
expect_goal 'zero1 >= 0.95 times ddp' '1.00 (1.00 to 1.00)' met
expect_goal 'fsdp >= 0.95 times ddp' 'not available: fsdp was not measured' 'not measured'
expect_row "zero2: exit code 2: error: strategy 'zero2' is not in this version"

# The other parts cannot do without it.
run "$python" "$compare/run" --only speed --build "$folder/build" --cache "$folder/cache" --results "$folder/none" --python "$folder/bin/torch"
expect_rc 2
[ ! -e "$folder/none" ] || fail "leaves a folder"
