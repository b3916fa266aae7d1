#!/usr/bin/env bash
# Bad input: one message from one rank and exit code 2, at any rank count, before anything is measured.
. "$(dirname "$0")/lib.bash"

# refuse MESSAGE ARGUMENTS...: seen by every process alone, so without MPI.
refuse() {
  local message=$1
  shift
  local start=$SECONDS
  run "$REDUCE_ALL" "$@"
  check_refusal "$message"
  [ $((SECONDS - start)) -le 60 ] || fail "took longer than a minute"
}

# refuse_together MESSAGE ARGUMENTS...: seen once the ranks know each other.
refuse_together() {
  local message=$1
  shift
  launch 3 "$@"
  check_refusal "$message"
}

check_refusal() {
  expect_rc 2
  expect_one_error
  expect_err "$1"
  grep -q 'float32' "$folder/out" && fail "something was measured"
}

refuse "did you mean 'ring'" --algorithm rnig
refuse "did you mean 'float32'" -d float3
refuse "did you mean 'sum'" -o sun
refuse "did you mean '--algorithm'" --algorthm ring
refuse 'above the largest' -b 2K -e 1K
refuse 'step-factor' -f 1
refuse 'use 8' -b 7
refuse 'does not use this' --demo --inject wrong:1
refuse 'does not use this' --demo --collective all_gather
refuse 'less than a second' --timeout 0.0001
ONEDNN_MAX_CPU_ISA=AVX22 refuse "did you mean 'AVX2'" -e 8
refuse 'are the same' --json "$folder/x" --csv "$folder/./x"

for n in 1 2 4; do
  launch "$n" --algorithm rnig
  check_refusal "did you mean 'ring'"
  launch "$n" --expect-ranks 5
  check_refusal '5 ranks'
done

refuse_together "cannot write" --json "$folder/none/r.json"
refuse_together "cannot write" --csv "$folder"
if [ "$(id -u)" -eq 0 ]; then # a link that somebody has laid where everybody may
  mkdir -m 1777 "$folder/all"
  echo kept >"$folder/kept"
  ln -s "$folder/kept" "$folder/all/r.json"
  chown -h 65534 "$folder/all/r.json" 2>/dev/null || rm "$folder/all/r.json"
fi
if [ -L "$folder/all/r.json" ]; then
  refuse 'a link that another user has made' -e 8 --json "$folder/all/r.json"
  ln -s "$folder/all/r.json" "$folder/mine"
  refuse 'a link that another user has made' -e 8 --json "$folder/mine"
  [ "$(cat "$folder/kept")" = kept ] || fail "what a link of others leads to was replaced"
fi
refuse_together 'more memory' -b 1E -e 1E
refuse_together 'more memory' -b 4096G -e 4096G --buffers cold
refuse_together 'nproc' --nproc 7
refuse_together 'several nodes' --algorithm hierarchical
refuse_together 'no rank 9' --inject stop:9:timing
refuse_together 'element 1000' --inject wrong:0:1000 -e 1K

launch 3 --algorithm shm --ranks-per-node 2
check_refusal 'shm needs all ranks on one node'
launch 2 --collective reduce_scatter --algorithm tree
check_refusal 'tree does not do reduce_scatter'

# A refused run leaves the file of an earlier run as it was.
echo old >"$folder/r.json"
launch 2 --json "$folder/r.json" --algorithm hierarchical
check_refusal 'several nodes'
[ "$(cat "$folder/r.json")" = old ] || fail "the old file is gone"
[ ! -e "$folder/r.json.tmp" ] || fail "a temporary file is left"
