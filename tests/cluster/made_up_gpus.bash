# Job scripts for GPUs, on made-up GPUs (../support/recorder_gpu.cpp), on top of ../cli/lib.bash.

# install_on_gpus BUILD: makes $on_gpus, an installation like $prefix with programs that see such GPUs.
install_on_gpus() {
  local program
  on_gpus=$folder/on-gpus
  cp -al "$prefix" "$on_gpus"
  for program in lockstep reduce_all; do
    cp --remove-destination "$1/bin/${program}_on_recorder" "$on_gpus/bin/$program" || fail "there is no ${program}_on_recorder"
  done
}

# Makes a script smaller, for job_script: a recorder computes with plain loops.
few_steps=(-e 's/ --max-time 3s / --max-time 1s /' -e 's/^recipe=tinyimagenet_resnet50 /recipe=mnist_cnn /'
  -e 's/ --resume auto / --resume auto --max-steps 2 --batch 8 /')

# missing_of_gpus GPUS RANKS NAME: reads the log of job NAME on stdin. Prints what it does not say about so many GPUs of
# a node and ranks, and, for a training, about bf16.
missing_of_gpus() {
  local log line expected=("^gpus  *ok  *$1 x made-up GPU for $1 rank")
  log=$(cat)
  case $3 in
    *train*) expected+=('^model .*, bf16$' "^device  $([ "$2" -eq 1 ] || echo "$2 GPUs, such as ")made-up GPU") ;;
    *) expected+=("^# device: $2 GPUs, such as made-up GPU") ;;
  esac
  for line in "${expected[@]}"; do grep -q -e "$line" <<<"$log" || echo "/$line/"; done
}
