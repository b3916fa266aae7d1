#!/usr/bin/env bash
# strategies.bash SOURCE: tests the comparison of strategies with a program that plays lockstep: its table, and what it finds
# wrong. pbs.bash and slurm.bash run it with the real program.
. "$(dirname "$0")/../cli/lib.bash"
strategies=$1/batch/lib/strategies
mkdir "$folder/bin" "$folder/work"
cd "$folder/work" || exit 1

# It is told by variables what to do wrong: WRONG=STRATEGY:WHAT, ABSENT=STRATEGY, KIND=cuda, REPORTS=no.
cat >"$folder/bin/lockstep" <<'END'
#!/bin/bash
echo "$*" >>"${0%/*}/calls"
words="$* "
value() { local rest=${words#*"$1" }; echo "${rest%% *}"; }
strategy=$(value --strategy) dir=$(value --run-dir)
is_wrong() { [[ ${WRONG:-} == "$strategy:$1" && $words != *'--nproc 1 '* ]]; }
if [[ ${ABSENT:-} == "$strategy" ]]; then
  echo "error: strategy '$strategy' is not for GPUs in this version (strategy)" >&2
  exit 2
fi
! is_wrong stop || exit 85
! is_wrong exit || { echo 'error: no memory' >&2 && exit 3; }
mkdir "$dir" || exit 3
measured() { is_wrong "$1" && echo "$3" || echo "$2"; }
step_ms=$(measured slow 20 50)
[[ $dir != *-speed-2 ]] || step_ms=9000 # something else ran; the median does not see it
forecast='{"mem_states_GB": 1, "mem_pool_GB": 0.5, "mem_peak_GB": 2.0, "traffic": {"sent_GB_per_step": 0.25, "n_messages_per_step": 14}}'
reported="{\"mem_states_GB\":$(measured states 1.01 1.03),\"mem_pool_GB\":$(measured pool 0.5 0.6),\"mem_peak_GB\":$(measured peak 1.9 1.7),\"sent_GB_per_step\":$(measured bytes 0.25 0.26),\"n_messages_per_step\":$(measured messages 14 15),\"communication_ms\":2.5}"
[[ ${REPORTS:-yes} == yes ]] || forecast=null reported=null
cat >"$dir/run.json" <<JSON
{
  "meta": {
    "arguments": ["a \"quoted\" word", "{", ","],
    "device": {
      "kind": "${KIND:-host}"
    }
  },
  "forecast": $forecast
}
JSON
cat >"$dir/log.jsonl" <<JSON
{"kind":"train","loss":7}
{"kind":"final","message":"","loss":$(measured loss 0.50 0.52),"global_batch":16,"steady":{"step_ms_p50":$step_ms,"step_ms_p99":null},"phases":[{"phase":"a","min_s":1}],"measured":$reported}
JSON
[[ $words != *--digest* ]] || echo "digest      weights $(measured bits 1 2)$(measured loss '' 3) losses 4"
END
chmod +x "$folder/bin/lockstep"
export LOCKSTEP=$folder/bin/lockstep

# compare FLAG ...: compares with one measurement of each, unless the flags say more.
compare() {
  rm -rf out "$folder/bin/calls"
  run "$strategies" --nproc 4 --out out --rounds 1 "$@"
}
# expect_row STRATEGY BITS RATE SHARE STATES PEAK SENT MESSAGES
expect_row() {
  grep -qE "^$1 +$2 +$3 +$4 +$5 +$6 +$7 +$8 +2.5\$" "$folder/out" || fail "no row $*"
}

compare --rounds 3 digits --batch 16
expect_rc 0
for name in DP ddp zero1 zero2 fsdp; do expect_row "$name" same 800 1.00 '1.01 \(1\)' '1.9 \(2\)' '0.25 \(0.25\)' '14 \(14\)'; done
expect_out '^PASS  bits, memory, traffic and speed$'
[ "$(wc -l <"$folder/bin/calls")" -eq 20 ] || fail "not 5 runs of each: $(cat "$folder/bin/calls")"
grep -qE -- 'train digits --batch 16 --threads [0-9]+ --strategy ddp --expect-ranks 1 .*--deterministic --digest --lanes 4 .*--nproc 1$' "$folder/bin/calls" || fail "DP is not one rank"
grep -qE -- '--strategy fsdp --expect-ranks 4 .*--max-steps 25 --nproc 4$' "$folder/bin/calls" || fail "fsdp is not four ranks"
cmp out/strategies.txt <(sed -n '/^Strategies on 4 ranks/,/^PASS/p' "$folder/out") || fail "the file is another table"

# finds WRONG MESSAGE: with one thing wrong, that alone is found.
finds() {
  WRONG=$1 compare --strategies "$(printf '%s\n' ddp "${1%%:*}" | uniq | paste -sd' ')"
  expect_rc 1
  expect_out "^FAIL  ${1%%:*}: $2"
  [ "$(grep -c '^FAIL' "$folder/out")" -eq 1 ] || fail "more than that is wrong"
  ! grep -q '^PASS' "$folder/out" || fail "passes"
}
finds zero2:bits 'ends with other weights or losses than ddp'
finds zero1:states 'mem_states_GB is 1.03, forecast 1; allowed: 2 %'
finds fsdp:pool 'mem_pool_GB is 0.6, forecast 0.5'
finds fsdp:peak 'mem_peak_GB is 1.7, forecast 2.0; allowed: 10 %'
finds ddp:bytes 'sent_GB_per_step is 0.26, forecast 0.25'
finds zero1:messages 'n_messages_per_step is 15, forecast 14'
finds fsdp:slow '0.40 of the speed of ddp; expected at least 0.6'
finds zero2:exit 'exit code 3: error: no memory'
WRONG=fsdp:slow compare --strategies 'ddp fsdp' --least-speed 0.4 digits --threads 3
expect_rc 0
[ "$(grep -c -- '--threads 3 ' "$folder/bin/calls")" -eq "$(grep -c -- --threads "$folder/bin/calls")" ] || fail "other threads: $(cat "$folder/bin/calls")"

# On GPUs the sums of strategies have another order.
KIND=cuda WRONG=zero1:bits compare --strategies 'ddp zero1'
expect_rc 0
expect_row zero1 nearly 800 1.00 '1.01 \(1\)' '1.9 \(2\)' '0.25 \(0.25\)' '14 \(14\)'
KIND=cuda WRONG=zero1:loss compare --strategies 'ddp zero1'
expect_rc 1
expect_out '^FAIL  zero1: ends with other weights or losses than ddp'

ABSENT=fsdp compare --strategies 'ddp fsdp'
expect_rc 0
expect_out '^fsdp: not in this version$'
! grep -q '^fsdp  ' "$folder/out" || fail "has a row of what is not there"
REPORTS=no compare --strategies ddp
expect_rc 0
expect_out '^PASS  bits and speed; this version does not report all of memory and traffic$'
WRONG=zero1:stop compare
expect_rc 85
[ "$(wc -l <"$folder/bin/calls")" -eq 3 ] || fail "goes on after it was asked to stop"

# refuses MESSAGE FLAG ...: one message, and nothing is made.
refuses() {
  run "$strategies" --out refused "${@:2}"
  expect_rc 2
  expect_one_error
  expect_err "$1"
  [ ! -e refused ] || fail "leaves a folder"
}
refuses '3 ranks cannot give the same bits .*fix: take 2, 4, 8, ... ranks' --nproc 3
refuses "'two' is not a number of ranks, steps or rounds" --nproc two
refuses "lacks ddp" --strategies 'zero1 fsdp'
refuses "unknown flag '--no-such-flag'" --no-such-flag
refuses "is not a share of the speed" --least-speed most
refuses "'out' exists" --out out
LOCKSTEP=/not/there refuses 'cannot find lockstep'
