#!/usr/bin/env bash
# ends.bash COMMAND some|all: how a job of three ranks ends. One of them stops, crashes or is killed, at some or all
# places of its life (--inject). Stopped: exit code 4 after the timeout; else 3. One message names rank, host, process
# and place. Files say the same and are whole, and no process is left. Without a fault the job succeeds, which shows
# that the fault has an effect.
. "$(dirname "$0")/../cli/lib.bash"
mark_job
cd "$folder" || exit 1
host=$(hostname -s)

# The seed marks this job's processes.
case $1 in
  reduce_all) command=(-b 8 -e 8 -n 5 --algorithm shm --visits 1 --json r.json) ;;
  train) command=(train toy 2 --run-dir r) ;;
  evaluate) command=(train digits --synthetic-samples 512 --evaluate-only --run-dir r) ;;
  shard) command=(shard synth toy --samples 300 --shard-size 4K --chunk-size 1K --out r) ;;
esac
command+=(--seed "$seed")

# start_by HOW FLAGS...: starts the job. HOW: nproc, where the program starts its ranks, or launcher.
start_by() {
  local how=$1
  shift
  rm -rf r
  echo 'of an earlier run' >r.json
  local begin=$SECONDS
  if [ "$how" = nproc ]; then run "$REDUCE_ALL" "${command[@]}" "$@" --nproc 3; else launch 3 "${command[@]}" "$@"; fi
  echo "$*: $((SECONDS - begin)) s"
  none_with "$seed" || await none_with "$seed"
}

# expect_end WORD RANK PHASE: expects the end of a job with that fault.
expect_end() {
  local told
  expect_err "injected: $1:$2:$3"
  # MPICH's launcher ends the others so late that watchdogs report a rank that is gone, too.
  if [ "$1" = stop ] || "$MPIEXEC" --version | grep -q 'Open MPI\|OpenRTE'; then expect_one_error; fi
  if [ "$1" = stop ]; then
    expect_rc_of_job 4
    told="rank $2 on $host \(pid [0-9]+\): stopped by a signal"
    case $3 in
      left) ;; # others have left, too, and its guard reports it
      write* | sync*) told+='.* last seen in phase work' ;;
      *) told+=".* last seen in phase ${3%%:*}" ;;
    esac
    expect_err "$told"
  else
    expect_rc_of_job 3
    told="rank $2 on $host \(pid [0-9]+\) has died: signal"
    expect_err "$told"
  fi
}

# expect_status: expects that the run's status says so, if the run had begun and not ended.
expect_status() {
  grep -q '"state": "failed"' r/status.json || fail "status: $(cat r/status.json)"
  grep -qE "\"message\": \".*rank $1 on $host \(pid [0-9]+\)" r/status.json || fail "status: $(cat r/status.json)"
}

# expect_table: expects a file of this job from the first measurement on, which is valid and not complete. Rank 0 ends
# its table, even if it was stopped.
expect_table() {
  grep -q '"complete": *false' r.json && tail -c 3 r.json | grep -q '}' || fail "the file is not of this run"
  expect_out '^# not complete: a rank stalled'
  expect_out '^# Avg bus bandwidth    : '
}

run "$REDUCE_ALL" "${command[@]}" --nproc 3
expect_rc 0
while read -r how fault <&3; do
  IFS=: read -r word rank phase <<<"$fault"
  start_by "$how" --timeout 2s --inject "$fault"
  expect_end "$word" "$rank" "$phase"
  case $1.$word.$phase in
    reduce_all.stop.timing | reduce_all.stop.verification) expect_table ;;
    train.*.training* | train.*.save | evaluate.*.evaluation*) expect_status "$rank" ;;
    shard.*.finish | shard.*.left) ;; # it is complete
    shard.*) [ -z "$(ls -d r 2>/dev/null)" ] || fail "there is a set" ;;
  esac
done 3< <(grep -E "^(some|$2) $1 " <<'TABLE' | cut -d ' ' -f 3-
all reduce_all launcher stop:0:init
all reduce_all nproc stop:2:warmup
some reduce_all launcher stop:0:timing
all reduce_all nproc stop:2:verification
all reduce_all nproc stop:1:finish
some reduce_all nproc stop:1:left
all reduce_all launcher kill:1:init
some reduce_all nproc kill:2:setup
all reduce_all nproc kill:0:timing
all reduce_all nproc kill:1:finish
some reduce_all launcher kill:1:left
all train nproc stop:1:init
all train nproc stop:2:work
all train nproc stop:0:setup
some train nproc stop:1:training:7
all train launcher stop:1:finish
all train nproc stop:1:left
all train launcher kill:1:init
all train nproc kill:1:setup:2
all train nproc kill:2:training:1
all train launcher kill:0:training:9
some train launcher segv:1:training
some train nproc kill:0:save
all train nproc kill:1:finish
all train nproc kill:1:left
all evaluate nproc stop:1:evaluation:2
some evaluate nproc kill:1:evaluation
all shard nproc stop:1:init
all shard launcher stop:0:work
some shard nproc stop:1:write:2
all shard nproc stop:1:left
all shard nproc kill:1:init
all shard nproc kill:1:work
some shard launcher kill:2:write
all shard nproc kill:1:sync
some shard nproc kill:1:finish
all shard nproc kill:1:left
TABLE
)
