# A Slurm cluster of two nodes on this machine, on top of ../cli/lib.bash: real slurmctld, slurmd and munged, each node in
# namespaces of its own (network, host name, processes, /dev/shm, /tmp), so that MPI takes the nodes for separate hosts. It is gone
# when the test ends, whatever happens. Where that cannot be made: 77.
. "$(dirname "$0")/../cli/lib.bash"
trap 'stop_cluster; rm -rf "$folder"' EXIT
cluster=$folder/cluster
await_limit_s=400 # for whole jobs
await_pause_s=0.25 # Slurm is asked each time, by programs that would otherwise take a quarter of a core
nodes=(node-a node-b)
declare -A init_of=() # process that holds a node's namespaces, and takes all in them along when it is killed
daemon_path=/usr/local/sbin:/usr/sbin:/sbin:$PATH

# skip_unless_possible: what all this needs.
skip_unless_possible() {
  local program
  for program in slurmctld slurmd munged ip nsenter unshare; do
    PATH=$daemon_path type "$program" >/dev/null 2>&1 || { echo "there is no $program (Debian: slurm-wlm, munge, iproute2)" && exit 77; }
  done
  [ "$EUID" -eq 0 ] && unshare --net --uts --mount --ipc --pid --fork true 2>/dev/null || {
    echo "namespaces cannot be made here: not root, or not allowed"
    exit 77
  }
}

# on HOST COMMAND...: there, as a user who has logged in. HOST: ctl, node-a or node-b. What batch/README.md says of MPI_Init and
# Slurm 22.05 holds here.
on() {
  local host=$1
  shift
  nsenter --target "${init_of[$host]}" --net --uts --mount --ipc --pid -- env SLURM_CONF="$cluster/slurm.conf" \
    SLURM_PMIX_DIRECT_CONN=false SLURM_PMIX_FENCE=tree PATH="$daemon_path" "$@"
}

# start_host HOST ADDRESS: its namespaces; others are reached through a bridge in ctl's. What they share is $folder.
# Their first process is a shell, which collects the processes that daemons leave behind.
start_host() {
  local host=$1 address=$2 link=to-$1 pid
  rm -rf "${cluster:?}/$host" "$cluster/$host.up" # a node that comes back has forgotten what ran there
  mkdir "$cluster/$host"
  unshare --net --uts --mount --ipc --pid --fork --kill-child --mount-proc \
    bash -c "hostname $host && mount -t tmpfs tmpfs /dev/shm && mount -t tmpfs tmpfs /mnt && mount --bind '$cluster/$host' /var/spool &&
      mkdir /mnt/test && mount --bind '$folder' /mnt/test && mount -t tmpfs tmpfs /tmp && mkdir -p '$folder' && mount --bind /mnt/test '$folder' &&
      mount --bind '$cluster/hosts' /etc/hosts && ip link set lo up && touch '$cluster/$host.up' && while :; do sleep 60; done" 2>>"$cluster/$host.err" &
  await test -e "$cluster/$host.up"
  for pid in $(cat "/proc/$!/task/$!/children"); do init_of[$host]=$pid; done
  if [ "$host" = ctl ]; then
    on ctl ip link add bridge type bridge
    on ctl ip address add "$address/24" dev bridge
    on ctl ip link set bridge up
  else
    nsenter --target "${init_of[ctl]}" --net -- ip link add "$link" type veth peer name eth0 netns "${init_of[$host]}"
    on ctl ip link set "$link" master bridge up
    on "$host" ip address add "$address/24" dev eth0
    on "$host" ip link set eth0 up
  fi
}

# start_cluster [LINE ...]: with further lines of slurm.conf.
start_cluster() {
  skip_unless_possible
  mkdir -p "$cluster"/{munge,state}
  printf '%s\n' '127.0.0.1 localhost' '10.77.0.1 ctl' '10.77.0.2 node-a' '10.77.0.3 node-b' >"$cluster/hosts"
  write_configuration "$@"
  head -c 1024 /dev/urandom >"$cluster/munge/key"
  chmod 700 "$cluster/munge"
  chmod 400 "$cluster/munge/key"
  start_host ctl 10.77.0.1
  start_host node-a 10.77.0.2
  start_host node-b 10.77.0.3
  on ctl munged --force --key-file="$cluster/munge/key" --socket="$cluster/munge/socket" --pid-file="$cluster/munge/pid" \
    --log-file="$cluster/munge/log" --seed-file="$cluster/munge/seed" 2>>"$cluster/munge/err" || fail "munged: $(cat "$cluster/munge/err")"
  on ctl slurmctld || fail "slurmctld: $(cat "$cluster/slurmctld.log")"
  start_node node-a
  start_node node-b
  await all_idle
}

start_node() { on "$1" slurmd -N "$1" || fail "slurmd: $(cat "$cluster/slurmd.$1.log")"; }
all_idle() { [ "$(on ctl sinfo --noheader --Node --format='%N %T' | sort -u | grep -c ' idle$')" -eq "${#nodes[@]}" ]; }

# stop_cluster: every process of it.
stop_cluster() {
  local host
  for host in "${!init_of[@]}"; do kill -KILL "${init_of[$host]}" 2>/dev/null; done
  wait 2>/dev/null
  init_of=()
}

# write_configuration [LINE ...]: nodes that pretend to be as large as those of the sites that the templates are for, and have the
# partitions, features and GPUs of all of them. Slurm looks at neither, as it has no say here.
write_configuration() {
  cat >"$cluster/slurm.conf" <<EOF
ClusterName=virtual
SlurmctldHost=ctl(10.77.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$cluster/munge/socket,cred_expire=10
CredType=cred/munge
StateSaveLocation=$cluster/state
SlurmctldPidFile=$cluster/slurmctld.pid
SlurmctldLogFile=$cluster/slurmctld.log
SlurmdPidFile=/var/spool/slurmd.pid
SlurmdLogFile=$cluster/slurmd.%n.log
SlurmdSpoolDir=/var/spool/slurmd
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=pmix
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SlurmdTimeout=15
SlurmctldTimeout=30
KillWait=20
MinJobAge=3600
SchedulerParameters=sched_interval=2,sched_min_interval=200000,bf_interval=2,default_queue_depth=100
$(printf '%s\n' "$@")
NodeName=node-a,node-b CPUs=64 RealMemory=4000000 State=UNKNOWN
PartitionName=virtual Nodes=ALL Default=YES DefaultTime=10 MaxTime=INFINITE
EOF
  echo "PMIxCliTmpDirBase=/var/spool" >"$cluster/mpi.conf"
}

# submit ARGUMENTS OF SBATCH...: prints the job's number.
submit() { on ctl sbatch --parsable "$@"; }
# state_of JOB, restarts_of JOB
state_of() { on ctl scontrol show job "$1" 2>/dev/null | sed -n 's/.*JobState=\([A-Z_]*\).*/\1/p' | head -1; }
restarts_of() { on ctl scontrol show job "$1" | sed -n 's/.*Restarts=\([0-9]*\).*/\1/p'; }
is_in_state() { [[ $(state_of "$1") =~ ^($2)$ ]]; }
# await_end JOB: until nothing of it runs; its state and exit code are in $state and $rc.
await_end() {
  await is_in_state "$1" 'COMPLETED|FAILED|CANCELLED|TIMEOUT|NODE_FAIL|OUT_OF_MEMORY'
  state=$(state_of "$1")
  rc=$(on ctl scontrol show job "$1" | sed -n 's/.*ExitCode=\([0-9]*\):.*/\1/p')
}
