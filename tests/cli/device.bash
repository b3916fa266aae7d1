#!/usr/bin/env bash
# Vectors in the memory of GPUs that are made up ($REDUCE_ALL is linked with a recorder in the driver's place): which GPUs
# the ranks get, what takes part, that results are checked, and that files say where the vectors were.
here=$(dirname "$0")
. "$here/lib.bash"

few="-b 8 -e 8K -f 32 -n 8"

# `staged` among ranks that share the GPU; `auto` is what training would take.
for n in 1 2 3 4; do
  # shellcheck disable=SC2086
  launch "$n" $few --share-gpu --device cuda --json "$folder/r.json" --csv "$folder/r.csv"
  expect_rc 0
  expect_out '^# device: made-up GPU \(GPU-0.*, CUDA 13.0, driver for CUDA 13.0'
  expect_out '^# all_reduce: staged.*, auto$'
  expect_out 'GPU p50'
  expect_out ' staged '
  expect_out '^# host link: [0-9.]+ GB/s to the GPU, [0-9.]+ back'
  expect_out '^# Out of bounds values : 0 OK'
  [ "$(grep -cE '"(host_to_gpu|gpu_to_host)_GBps": *[0-9.]*[1-9]' "$folder/r.json")" -eq 2 ] || fail "no link to the host"
  grep -q '"limit_by":"links"' "$folder/r.json" && fail "a limit by links that are not there"
  if [ "$n" -gt 1 ]; then
    expect_out ', shared by ranks,'
    grep -q ' nccl ' "$folder/out" && fail "NCCL takes part though ranks share a GPU"
    grep -q '"shared":true' "$folder/r.json" || grep -q '"shared": true' "$folder/r.json" || fail "the file does not say so"
  fi
  grep -q '"device_time_us_p50":[0-9]' "$folder/r.json" || fail "no times of the GPU's clock"
  head -1 "$folder/r.csv" | grep -q ',device_time_us_p50$' || fail "no such column"
done
# NCCL serves them if each names another host.
# shellcheck disable=SC2016,SC2086  # words, of the ranks
run "$MPIEXEC" "$MPIEXEC_NUMPROC_FLAG" 2 ${MPIEXEC_PREFLAGS:-} bash -c 'NCCL_HOSTID=$$ exec "$@"' rank "$REDUCE_ALL" $few --share-gpu --device cuda
expect_rc 0
expect_out ' nccl '
expect_out '^# Out of bounds values : 0 OK'
# shellcheck disable=SC2086
NCCL_HOSTID=one launch 2 $few --share-gpu --device cuda
expect_rc 0
grep -q ' nccl ' "$folder/out" && fail "NCCL takes part though ranks name one host"

! python3 -c 'import jsonschema' 2>/dev/null || python3 "$here/validate.py" "$SCHEMA" "$folder/r.json" complete || fail "the file is not as its schema says"

# What is measured on GPUs is not compared with what is measured on the host.
launch 2 -e 8 -n 8 --device host --baseline "$folder/r.json"
expect_rc 2
expect_one_error
launch 4 -e 8 -n 8 --device host --baseline "$folder/r.json"
expect_rc 2
expect_err 'device is host, not made-up GPU, shared by ranks'

# Every collective, type and operation, in place too, in all ways that buffers are prepared.
for words in '--collective reduce_scatter --buffers dirty' '--collective all_gather --in-place' '-d all -o all -b 1K -e 1K' \
  '--buffers cold --sync none -d bfloat16 -o max' '-d int8 -o avg -w 0 --in-place'; do
  # shellcheck disable=SC2086
  launch 3 -e 4K -f 64 -n 8 --share-gpu --device cuda --algorithm staged $words
  expect_rc 0
  expect_out '^# Out of bounds values : 0 OK'
done

# A wrong element is found there as well, in periods of data and where parts begin between two multiples of 16 bytes.
for words in '-b 4K -e 4K --inject wrong:1:7' '-b 300K -e 300K -d int8 --in-place --inject wrong:1:299000' \
  '-b 130K -e 130K -d float16 -o prod --collective reduce_scatter --in-place --inject wrong:1:22000' \
  '-b 130K -e 130K -d int16 --collective all_gather --inject wrong:1:65000'; do
  # shellcheck disable=SC2086
  launch 3 -n 10 --share-gpu --device cuda --algorithm staged $words
  expect_rc 1
  expect_out "^# WRONG: .* rank 1 on [^,]+, index ${words##*:}: expected .*, found .*"
  expect_out '^# Out of bounds values : 1 FAILED$'
done

# One rank in place moves nothing but by way of the host: no rates, and none is the fastest.
launch 1 -b 4K -e 8K -n 8 --in-place --device cuda
expect_rc 0
expect_out ' staged .* [0-9.]+ +[0-9.]+ +[0-9.]+ +0 +8 .*[0-9]$'
grep -q '\*$' "$folder/out" && fail "something is the fastest of what does nothing"
if grep -q ' nccl ' "$folder/out"; then
  expect_out ' nccl .* - +- +- +0 +8 '
  expect_out ' auto .* - +- +- +0 +8 '
  launch 1 -b 4K -e 8K -n 8 --in-place --device cuda --algorithm nccl
  expect_rc 0
  expect_out '^# Avg bus bandwidth    : none, as nothing moves$'
fi

# No two ranks get one GPU unasked; `auto` then stays on the host, and says why.
launch 2 -e 8 -n 8 --device cuda
expect_rc 2
expect_one_error
expect_err 'ranks 0 and 1 share one GPU, GPU-0'
expect_err 'fix: .*--share-gpu'
launch 2 -e 8 -n 8
expect_rc 0
expect_out '^# device: host, as ranks 0 and 1 share one GPU, GPU-0'
expect_out ' shm '

# Bound ranks that see all GPUs take those near them; where that cannot be, it is said.
allowed=()
while IFS=- read -r first last; do
  for ((cpu = first; cpu <= ${last:-$first}; ++cpu)); do allowed+=("$cpu"); done
done < <(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status | tr , '\n')
# bound_to CPU CPU: a rank each.
bound_to() {
  # shellcheck disable=SC2086  # the preflags are words
  run "$MPIEXEC" ${MPIEXEC_PREFLAGS:-} "$MPIEXEC_NUMPROC_FLAG" 1 taskset -c "$1" "$REDUCE_ALL" -e 8 -n 8 --algorithm staged \
    --json "$folder/near.json" : "$MPIEXEC_NUMPROC_FLAG" 1 taskset -c "$2" "$REDUCE_ALL" -e 8 -n 8 --algorithm staged \
    --json "$folder/near.json"
  expect_rc 0
}
if [ "${#allowed[@]}" -ge 2 ]; then
  export LOCKSTEP_MADE_UP_GPUS=2 LOCKSTEP_MADE_UP_GPU_PROCESSORS="${allowed[1]};${allowed[0]}"
  bound_to "${allowed[0]}" "${allowed[1]}"
  tr -d ' \n' <"$folder/near.json" | grep -q '"uuids":\["GPU-[0-9a-f-]*-000000000001","GPU-[0-9a-f-]*-000000000000"\]' ||
    fail "the ranks do not have the GPUs near them"
  ! grep -q 'far from their GPU' "$folder/out" || fail "a warning without reason"
  bound_to "${allowed[0]}" "${allowed[0]}"
  expect_out 'WARNING: 1 of 2 ranks runs on processors far from their GPU, such as rank 1 on '
  unset LOCKSTEP_MADE_UP_GPU_PROCESSORS
fi

# A GPU each: NCCL and its variants, which take part where they are named.
export LOCKSTEP_MADE_UP_GPUS=4
if "$REDUCE_ALL" --device cuda -e 8 -n 8 | grep -q 'NCCL'; then
  for n in 2 3; do
    # shellcheck disable=SC2086
    launch "$n" $few --json "$folder/r.json"
    expect_out '^# device: .*, NCCL [0-9.]+ \(24 channels\)$'
    grep -q '"nccl_channels": *24' "$folder/r.json" || fail "the result does not tell of the channels"
    expect_rc 0
    expect_out "^# device: $n GPUs, such as made-up GPU"
    expect_out '^# host link: .* \(slowest: rank [0-9]'
    expect_out '^# %limit: .* over the links between their GPUs .*2\(P-1\)/P of the vector'
    expect_out '^# all_reduce: staged, nccl, auto$'
    expect_out '^# auto: as lockstep train chooses: nccl$'
    expect_out '^# Out of bounds values : 0 OK'
  done
  # Of three ranks each gets 4/3 of the vector by messages, which take longer than the recorder's copies.
  launch 3 -b 4M -e 4M -n 8 --algorithm nccl --json "$folder/r.json"
  expect_rc 0
  grep -q '"limit_by":"links"' "$folder/r.json" || fail "the links are no limit"
  ! python3 -c 'import jsonschema' 2>/dev/null || python3 "$here/validate.py" "$SCHEMA" "$folder/r.json" complete ||
    fail "the file is not as its schema says"
  launch 2 -e 8 -n 8 --collective all_gather --algorithm nccl
  expect_rc 0
  expect_out '^# %limit: .* \(\(P-1\)/P of the vector;'
  # Where none of NCCL's rows takes part nothing is exchanged.
  launch 2 -e 8 -n 8 --algorithm staged
  expect_rc 0
  grep -q '^# %limit: .*links' "$folder/out" && fail "links are a limit without NCCL"
  LOCKSTEP_MADE_UP_MPI=1 launch 3 -b 8 -e 4K -n 8 --algorithm staged,mpi:device,nccl
  expect_rc 0
  expect_out '^# all_reduce: staged, mpi:device, nccl$'
  expect_out ' mpi:device .* 0 +8 '
  launch 2 -e 8 -n 8 --algorithm mpi:device
  expect_rc 2
  expect_one_error
  expect_err 'mpi:device needs an MPI library that takes memory of GPUs'
  launch 3 -b 6K -e 6K -n 8 --collective reduce_scatter --algorithm nccl,nccl:ring/ll128,nccl:nvls
  expect_rc 0
  expect_out ' nccl:ring/ll128 .* 0 +8 '
  # What NCCL would do in another way than the row says is refused.
  LOCKSTEP_MADE_UP_SWITCHES=0 launch 3 -e 8 -n 8 --algorithm nccl:nvls
  expect_rc 2
  expect_one_error
  expect_err 'nccl:nvls needs NVSwitches that add up .*, and some of these GPUs have none'
  launch 3 -b 4K -e 4K -n 8 --collective reduce_scatter --algorithm nccl:nvls
  expect_rc 2
  expect_err 'nccl:nvls needs parts of equal length'
  launch 3 -e 8 -n 8 --algorithm nccl:nvls -d int8
  expect_rc 2
  expect_err 'nccl:nvls does not add up int8'
  launch 3 -e 8 -n 8 --algorithm nccl:nvlstree
  expect_rc 2
  expect_err 'nccl:nvlstree needs ranks on several nodes'
  # NCCL knows nothing of nodes that are pretended.
  launch 3 -b 4K -e 4K -n 8 --ranks-per-node 1 --algorithm nccl:nvlstree
  expect_rc 2
  expect_one_error
  expect_err 'nccl:nvlstree needs ranks on several nodes, and to NCCL these are all on one'
  launch 3 -b 4K -e 4K -n 8 --ranks-per-node 1 --algorithm nccl:nvls
  expect_rc 0
  expect_out ' nccl:nvls .* 0 +8 '
  # Calls in a graph give what they give without; a library's own are in it, those of the host are not.
  launch 2 -b 8 -e 4K -n 8 --graph --algorithm staged,nccl,nccl:tree/ll --json "$folder/g.json"
  expect_rc 0
  expect_out '^# device: 2 GPUs, .* NCCL .*; calls but those by way of the host are replayed in a graph$'
  expect_out ' nccl:tree/ll .* 0 +8 '
  expect_out '^# Out of bounds values : 0 OK'
  grep -q '"graph": *true' "$folder/g.json" || fail "the result does not tell of the graph"
  grep -q 'no effect' "$folder/err" && fail "a warning of a graph that is there"
  launch 2 -e 8 -n 8 --graph --algorithm staged --json "$folder/r.json"
  expect_rc 0
  expect_err '^warning: --graph has no effect: none of NCCL.s rows takes part$'
  grep -q 'replayed' "$folder/out" && fail "a graph is told that is not there"
  grep -q '"graph": *false' "$folder/r.json" || fail "the result tells of a graph that is not there"
  launch 2 -b 8 -e 8 -n 8 --baseline "$folder/g.json"
  expect_rc 2
  expect_err 'calls replayed in a graph'
  launch 2 -e 8 -n 8 --graph --buffers cold
  expect_rc 2
  expect_err 'a graph knows one pair of buffers'
  # Registered with every communicator; the library in NCCL's place refuses calls in other memory, and elsewhere in it
  # than other ranks.
  if "$REDUCE_ALL" --device cuda -e 8 -n 8 -R 2 2>&1 | grep -q 'NCCL [0-9.]* or newer'; then
    echo "not tried: --register, as this NCCL is too old"
  else
    for words in symmetric 'local --in-place --graph' 'symmetric --buffers cold --sync none' 'local --collective reduce_scatter' \
      'symmetric --collective all_gather --in-place'; do
      how=${words%% *}
      # shellcheck disable=SC2086
      launch 3 $few --register $words --algorithm staged,nccl,nccl:ring/ll --visits 2 --json "$folder/$how.json"
      expect_rc 0
      expect_out "^# device: .* NCCL [0-9.]+ \\(24 channels\\); vectors are registered with NCCL \\($how\\)"
      expect_out '^# Out of bounds values : 0 OK'
      grep -q "\"register\": *\"$how\"" "$folder/$how.json" || fail "the result does not tell how it was registered"
    done
    ! python3 -c 'import jsonschema' 2>/dev/null || python3 "$here/validate.py" "$SCHEMA" "$folder/local.json" complete ||
      fail "the file is not as its schema says"
    launch 3 -b 8 -e 8 -n 8 -R 2 --collective all_gather --in-place --baseline "$folder/local.json"
    expect_rc 2
    expect_err 'vectors registered \(local\)'
    # What is not had is told once, and is not in the results.
    LOCKSTEP_HOST_NCCL_REGISTERS=local launch 2 -e 8 -n 8 -R 2 --json "$folder/r.json"
    expect_rc 0
    [ "$(grep -c '^warning: --register symmetric has no effect: NCCL registers no memory so' "$folder/err")" -eq 1 ] ||
      fail "no warning, or several"
    grep -q 'registered with NCCL' "$folder/out" && fail "windows are told that are not there"
    grep -q '"register": *"none"' "$folder/r.json" || fail "the result tells of windows that are not there"
    launch 2 -e 8 -n 8 --register local --algorithm staged
    expect_rc 0
    expect_err '^warning: --register local has no effect: none of NCCL.s rows takes part$'
    LOCKSTEP_HOST_NCCL_FAILS=5 launch 2 -e 8 -n 8 --algorithm nccl --register symmetric
    expect_rc 3
    expect_err 'a fault that was asked for'
  fi
  launch 2 -e 8 -n 8 --algorithm nccl -d int16
  expect_rc 2
  expect_one_error
  expect_err 'nccl does not know int16'
  launch 2 -e 8 -n 8 --algorithm nccl -o avg -d int32
  expect_rc 2
  expect_err 'nccl averages floats'
  # What cannot connect the ranks, or is too old, is told once before anything is measured.
  for unconnected in identifier ranks; do
    for n in 1 3; do
      LOCKSTEP_HOST_NCCL_UNCONNECTED=$unconnected launch "$n" -e 8 -n 8
      expect_rc 2
      expect_one_error
      expect_err '^error: NCCL [0-9.]+, .*: system error: no interface that was asked for \(--device cuda\)$'
      expect_err '^  expected: an NCCL that connects the GPUs of all ranks$'
      expect_err '^  fix: NCCL_DEBUG=INFO .*NCCL_SOCKET_IFNAME.*; or --device host$'
      grep -q ' nccl ' "$folder/out" && fail "something was measured"
      LOCKSTEP_HOST_NCCL_UNCONNECTED=$unconnected launch "$n" -e 8 -n 8 --algorithm staged
      expect_rc 0
    done
  done
  LOCKSTEP_HOST_NCCL_VERSION=21704 launch 2 -e 8 -n 8
  expect_rc 2
  expect_one_error
  expect_err '^error: NCCL 2.17.4 is too old \(libnccl.so.2\)$'
  expect_err '^  expected: NCCL 2.18.0 or newer$'
  expect_err '^  fix: .*LD_LIBRARY_PATH; this program was built with [0-9.]+; or --device host$'
  LOCKSTEP_HOST_NCCL_VERSION=21800 launch 2 -e 8 -n 8 --algorithm nccl
  expect_rc 0
  LOCKSTEP_HOST_NCCL_VERSION=21800 launch 2 -e 8 -n 8 --algorithm nccl --register local
  expect_rc 2
  expect_one_error
  expect_err "'local' needs NCCL 2.19.0 or newer, and this is 2.18.0"
  LOCKSTEP_HOST_NCCL_FAILS=5 launch 2 -e 8 -n 8 --algorithm nccl
  expect_rc 3
  expect_err 'NCCL [0-9.]+, all_reduce: system error: a fault that was asked for; NCCL_DEBUG'
fi
launch 2 -e 8 -n 8 --device cuda --algorithm ring
expect_rc 2
expect_one_error
expect_err 'ring works on the memory of the host'
expect_err '^  fix: use --device host, or leave it out$'

# What does not fit, before anything is measured.
launch 2 -e 2G --device cuda -n 8
expect_rc 2
expect_one_error
expect_err 'vectors of 2 GiB need 4225 MiB of GPU GPU-0.*, which has 1 GiB'
expect_err 'fix: use -e 447M or less'
LOCKSTEP_MADE_UP_GPUS=1 launch 2 -e 512M --device cuda --share-gpu -n 8
expect_rc 2
expect_err 'has 1 GiB for 2 ranks'
# What passes through the host takes memory there, the vectors do not.
LOCKSTEP_MADE_UP_GPU_BYTES=$((1 << 50)) launch 1 -b 64T -e 64T --device cuda -n 8
expect_rc 2
expect_err 'vectors of 64 TiB need more memory than the'
expect_err 'expected: room for about 3 vectors per rank'
# However little fits, it is named, and does.
for bytes in 3000000 100000 1000; do
  LOCKSTEP_MADE_UP_GPU_BYTES=$bytes launch 1 -e 64M --device cuda -n 8
  expect_rc 2
  size=$(sed -n 's/.*fix: use -e \([1-9][0-9]*[MK]*\) or less, or --device host$/\1/p' "$folder/err")
  [ -n "$size" ] || fail "no size that fits into $bytes B"
  LOCKSTEP_MADE_UP_GPU_BYTES=$bytes launch 1 -b "$size" -e "$size" --device cuda -n 8 --algorithm staged
  expect_rc 0
done
LOCKSTEP_MADE_UP_GPU_BYTES=100000 launch 1 -b 1M --device cuda -n 8
expect_rc 2
expect_err 'fix: use -b and -e 32K or less'
LOCKSTEP_MADE_UP_GPU_BYTES=100 launch 1 --device cuda -n 8
expect_rc 2
expect_err 'fix: --device host$'

# Without a GPU.
export LOCKSTEP_MADE_UP_GPUS=0
launch 2 -e 8 -n 8 --device cuda
expect_rc 2
expect_one_error
expect_err 'shows no GPU to this process'
run "$REDUCE_ALL" --device gpu
expect_rc 2
expect_err "did you mean 'cuda'"
launch 2 -e 8 -n 8
expect_rc 0
expect_out '^# device: host, as .*shows no GPU'
grep -q -e 'share-gpu' -e '--graph' "$folder/err" && fail "a warning of a flag that was not given"
launch 2 -e 8 -n 8 --graph
expect_rc 0
expect_err '^warning: --graph has no effect: vectors are in the memory of the host$'
launch 2 -e 8 -n 8 --register local
expect_rc 0
expect_err '^warning: --register has no effect: vectors are in the memory of the host$'
launch 2 -e 8 -n 8 --register local --device host
expect_rc 2
expect_err 'nothing of the host is registered with NCCL'
launch 2 -e 8 -n 8 --graph --device host
expect_rc 2
expect_err 'nothing of the host is recorded in a graph'
launch 2 -e 8 -n 8 --share-gpu
expect_rc 0
[ "$(grep -c '^warning: --share-gpu has no effect: vectors are in the memory of the host$' "$folder/err")" -eq 1 ] ||
  fail "no warning, or several"
launch 2 -e 8 -n 8 --device host
expect_rc 0
grep -q '^# device' "$folder/out" && fail "the host is named though it was asked for"
exit 0
