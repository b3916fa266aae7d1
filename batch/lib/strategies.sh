# Compares strategies (share/doc/strategies.md) on the ranks of a job, after job.sh and the site's file. For bash.
#
#   compare_strategies RECIPE [FLAG ...]    trains by each strategy, one after another, with these flags of lockstep train
#
# It writes $folder/strategies.txt and prints it. It returns 0 for PASS, 1 for FAIL, and 85 if it was asked to stop. Judged are:
#   bits     a deterministic run ends with the weights and losses of ddp; on GPUs, whose sums have another order, with nearly its loss
#   memory   states and places of units as forecast, within 2 %; the peak within 10 %
#   traffic  messages and bytes per step as forecast
#   speed    at least least_speed times that of ddp. fsdp sends half as much again: 0.67 where the network is the limit
# The row DP is a baseline that only has to have the same bits: one rank with the batches of all.
strategies=${strategies:-ddp zero1 zero2 fsdp}
steps=${steps:-20}             # of a measurement, after 5 of warm-up
rounds=${rounds:-3}            # of measurements, in turn; the median counts
least_speed=${least_speed:-0.6}

# Gives up if there is nothing to compare.
check_comparison() {
  ((!(n_ranks & (n_ranks - 1)))) || give_up "$n_ranks ranks cannot give the same bits as others" "take 2, 4, 8, ... ranks"
  [[ " $strategies " == *' ddp '* ]] || give_up "strategies='$strategies' lacks ddp, which the others are compared with" "add ddp"
}

compare_strategies() {
  local flags=("$@") ran=() name round status
  check_comparison
  : >"$folder/findings.txt"
  for name in DP $strategies; do
    train_by "$name" bits --deterministic --digest --lanes "$n_ranks" --max-steps 6
    status=$?
    ((status != 85)) || return 85
    if ((status == 0)); then
      ran+=("$name")
    elif ((status == 2)) && grep -q 'not \(for GPUs \)\?in this version' "$folder/$name-bits.log"; then
      echo "$name: not in this version" >>"$folder/left_out.txt"
    else
      echo "$name: exit code $status: $(complaint_in "$folder/$name-bits.log")" >>"$folder/$([[ $name == DP ]] && echo left_out || echo findings).txt"
    fi
  done
  for ((round = 1; round <= rounds; ++round)); do
    for name in "${ran[@]}"; do
      train_by "$name" "speed-$round" --max-steps $((steps + 5))
      status=$?
      ((status != 85)) || return 85
      ((status == 0)) || echo "$name: exit code $status: $(complaint_in "$folder/$name-speed-$round.log")" >>"$folder/findings.txt"
    done
  done
  report_on "${ran[@]}" >"$folder/strategies.txt"
  status=$?
  cat "$folder/strategies.txt"
  return "$status"
}

# train_by NAME KIND FLAG ...: one run, in $folder/NAME-KIND; its output is beside it. Returns its exit code.
train_by() {
  local name=$1 kind=$2 n_ranks=$n_ranks n_nodes=$n_nodes strategy=$1
  [[ $name != DP ]] || n_ranks=1 n_nodes=1 strategy=ddp
  printf '== %s: %s, %s\n' "$(date '+%F %T')" "$name" "$kind"
  launch lockstep train "${flags[@]}" --strategy "$strategy" --expect-ranks "$n_ranks" --val-split '' \
    --run-dir "$folder/$name-$kind" "${@:3}" >"$folder/$name-$kind.log" 2>&1
}

# complaint_in LOG: the line that says most.
complaint_in() { { grep -m1 -i 'error' "$1" || tail -n 1 "$1"; } | cut -c1-200; }

# flat: JSON on stdin as lines "PATH VALUE", such as "steady.samples_per_s 32000". A text has no line break.
flat() {
  awk '{
    while (match($0, /^[ \t]*("([^"\\]|\\.)*"|[][{}:,]|[^][{}:, \t"]+)/)) {
      token = substr($0, 1, RLENGTH)
      $0 = substr($0, RLENGTH + 1)
      sub(/^[ \t]*/, "", token)
      if (token == "{" || token == "[") { kind[++depth] = token; key[depth] = 0; has_key[depth] = 0 }
      else if (token == "}" || token == "]") has_key[--depth] = 0
      else if (token == ",") key[depth] += kind[depth] == "["
      else if (token != ":") {
        gsub(/^"|"$/, "", token)
        if (kind[depth] == "{" && !has_key[depth]) { key[depth] = token; has_key[depth] = 1; continue }
        path = key[1]
        for (i = 2; i <= depth; ++i) path = path "." key[i]
        print path, token
        has_key[depth] = 0
      }
    }
  }'
}
# value_in RUN WHAT KEY: KEY within an object called WHAT (forecast, measured, ...) in run.json or the end of the log, or WHAT within
# an object called KEY; nothing if there is neither.
value_in() {
  { cat "$1/run.json" && tail -n 1 "$1/log.jsonl"; } 2>/dev/null | flat |
    awk -v what="$2" -v key="$3" 'BEGIN { path = "(^|[.])(" what "[.]([^ ]*[.])?" key "|" key "[.]" what ")$" } $1 ~ path && $2 != "null" { value = $2 } END { print value }'
}
# median NUMBER ...
median() { printf '%s\n' "$@" | grep . | sort -g | awk '{ v[NR] = $1 } END { if (NR) print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'; }
# is_within PERCENT A B
is_within() { awk -v p="$1" -v a="$2" -v b="$3" 'BEGIN { d = a - b; exit !((d < 0 ? -d : d) <= p / 100 * (b < 0 ? -b : b)) }'; }
digest_of() { sed -n 's/^digest *//p' "$folder/$1-bits.log" | tail -n 1; }

# bits_of NAME: same, nearly or different. Ranks of hosts sum in the same order.
bits_of() {
  local digest
  digest=$(digest_of "$1")
  if [[ $digest && $digest == "$(digest_of ddp)" ]]; then
    echo same
  elif [[ $(value_in "$folder/ddp-bits" device kind) == cuda ]] &&
    is_within 1 "$(end_of "$1-bits" loss)" "$(end_of ddp-bits loss)"; then
    echo nearly
  else
    echo different
  fi
}
# speed_of NAME: samples/s by the median step of each round.
speed_of() {
  local round times=() batch
  for ((round = 1; round <= rounds; ++round)); do times+=("$(value_in "$folder/$1-speed-$round" steady step_ms_p50)"); done
  batch=$(end_of "$1-speed-1" global_batch)
  awk -v batch="${batch:-0}" -v ms="$(median "${times[@]}")" 'BEGIN { print (ms > 0 ? 1000 * batch / ms : 0) }'
}
# end_of RUN KEY: a number of the last event of its log.
end_of() { tail -n 1 "$folder/$1/log.jsonl" 2>/dev/null | flat | sed -n "s/^$2 //p"; }
# beside NAME KEY PERCENT: "measured (forecast)", and a finding if they differ by more.
beside() {
  local forecast measured
  forecast=$(value_in "$folder/$1-speed-1" forecast "$2") measured=$(value_in "$folder/$1-speed-1" measured "$2")
  if [[ ! $forecast || ! $measured ]]; then
    echo 'not reported'
    return
  fi
  printf '%.4g (%.4g)\n' "$measured" "$forecast"
  [[ $1 == DP ]] || is_within "$3" "$measured" "$forecast" ||
    echo "$1: $2 is $measured, forecast $forecast; allowed: $3 %" >>"$folder/findings.txt"
}

# report_on NAME ...: prints the table and the verdict of those that ran. Returns 1 if there is a finding.
report_on() {
  local -x LC_ALL=C # numbers with a point
  local name bits rate of_ddp states peak sent exposed of_all has_all=yes
  of_all=$(speed_of ddp)
  printf 'Strategies on %s ranks, nodes: %s; lockstep train %s\n' "$n_ranks" "$n_nodes" "${flags[*]}"
  printf 'Beside each measured number is its forecast, in parentheses. Memory is of the rank that has most; sent is by all ranks;\n'
  printf 'exposed is communication that computing does not hide, of a step.\n\n'
  printf '%-8s  %-9s  %10s  %6s  %-17s  %-17s  %-17s  %-15s  %s\n' strategy bits samples/s 'of ddp' 'states, GB' 'peak, GB' 'sent, GB/step' messages/step 'exposed, ms'
  for name; do
    bits=$(bits_of "$name") rate=$(speed_of "$name")
    of_ddp=$(awk -v a="$rate" -v b="$of_all" 'BEGIN { if (b > 0) printf "%.2f", a / b; else print 0 }')
    states=$(beside "$name" mem_states_GB 2) peak=$(beside "$name" mem_peak_GB 10) sent=$(beside "$name" sent_GB_per_step 0.1)
    [[ $states$peak$sent != *'not reported'* ]] || has_all=no
    beside "$name" mem_pool_GB 2 >/dev/null # only fsdp has one
    exposed=$(value_in "$folder/$name-speed-1" measured communication_ms)
    printf '%-8s  %-9s  %10.4g  %6s  %-17s  %-17s  %-17s  %-15s  %s\n' "$name" "$bits" "$rate" "$of_ddp" "$states" "$peak" "$sent" \
      "$(beside "$name" n_messages_per_step 0.1)" "${exposed:+$(printf '%.4g' "$exposed")}"
    [[ $bits != different ]] || echo "$name: ends with other weights or losses than ddp" >>"$folder/findings.txt"
    [[ $name == DP ]] || awk -v a="$of_ddp" -v b="$least_speed" 'BEGIN { exit !(a >= b) }' ||
      echo "$name: $of_ddp of the speed of ddp; expected at least $least_speed" >>"$folder/findings.txt"
  done
  [[ ! -e $folder/left_out.txt ]] || { echo && cat "$folder/left_out.txt"; }
  echo
  if [[ -s $folder/findings.txt ]]; then
    sed 's/^/FAIL  /' "$folder/findings.txt"
    return 1
  fi
  printf 'PASS  %s\n' "$([[ $has_all == yes ]] && echo 'bits, memory, traffic and speed' || echo 'bits and speed; this version does not report all of memory and traffic')"
}
