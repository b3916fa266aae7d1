# A Slurm cluster of several nodes on this machine, on top of ../cli/lib.bash: real slurmctld, slurmd and munged. Each
# node has its own namespaces (network, host name, processes, /dev/shm, /tmp), so that MPI takes the nodes for separate
# hosts. The cluster disappears with the test, whatever happens. Exits with 77 if it cannot be made.
. "$(dirname "$0")/../cli/lib.bash"
trap 'stop_cluster; rm -rf "$site"' EXIT
site=$folder # shared by all nodes and parts; each part has its own $folder in it
cluster=$site/cluster
await_limit_s=400 # for whole jobs, several of which run at a time
await_pause_s=0.25
nodes=(node-{1..8})
daemon_path=/usr/local/sbin:/usr/sbin:/sbin:$PATH

# skip_unless_possible: checks all that the cluster needs.
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

# on HOST COMMAND...: runs it there, as a user who has logged in. HOST: ctl, or a node. What batch/README.md says about
# MPI_Init and Slurm 22.05 applies here.
on() {
  local host=$1
  shift
  nsenter --target "$(init_of "$host")" --net --uts --mount --ipc --pid -- env SLURM_CONF="$cluster/slurm.conf" \
    SLURM_PMIX_DIRECT_CONN=false SLURM_PMIX_FENCE=tree PATH="$daemon_path" "$@"
}

# init_of HOST: prints the process that holds its namespaces; all processes in them end with it. address_of HOST
init_of() { cat "$cluster/$1.init"; }
address_of() { sed -n "s/ $1\$//p" "$cluster/hosts"; }

# start_hosts HOST ...: makes their namespaces. A bridge in ctl's connects them. They share $site. Their first process
# is a shell, which collects the processes that daemons leave behind.
start_hosts() {
  local host pid
  local -A outer=()
  for host; do
    rm -rf "${cluster:?}/$host" "$cluster/$host.up" # a node that comes back has forgotten its jobs
    mkdir "$cluster/$host"
    unshare --net --uts --mount --ipc --pid --fork --kill-child --mount-proc \
      bash -c "hostname $host && mount -t tmpfs tmpfs /dev/shm && mount -t tmpfs tmpfs /mnt && mount --bind '$cluster/$host' /var/spool &&
        mkdir /mnt/test && mount --bind '$site' /mnt/test && mount -t tmpfs tmpfs /tmp && mkdir -p '$site' && mount --bind /mnt/test '$site' &&
        mount --bind '$cluster/hosts' /etc/hosts && ip link set lo up && touch '$cluster/$host.up' && while :; do sleep 60; done" 2>>"$cluster/$host.err" &
    outer[$host]=$!
  done
  for host; do
    await test -e "$cluster/$host.up"
    for pid in $(cat "/proc/${outer[$host]}/task/${outer[$host]}/children"); do echo "$pid" >"$cluster/$host.init"; done
    if [ "$host" = ctl ]; then
      on ctl ip link add bridge type bridge
      on ctl ip address add "$(address_of ctl)/24" dev bridge
      on ctl ip link set bridge up
    else
      nsenter --target "$(init_of ctl)" --net -- ip link add "to-$host" type veth peer name eth0 netns "$(init_of "$host")"
      on ctl ip link set "to-$host" master bridge up
      on "$host" ip address add "$(address_of "$host")/24" dev eth0
      on "$host" ip link set eth0 up
    fi
  done
}

# start_cluster [LINE ...]: starts it with additional lines of slurm.conf.
start_cluster() {
  local node i=1
  skip_unless_possible
  mkdir -p "$cluster"/{munge,state}
  printf '%s\n' '127.0.0.1 localhost' '10.77.0.1 ctl' >"$cluster/hosts"
  for node in "${nodes[@]}"; do echo "10.77.0.$((i += 1)) $node" >>"$cluster/hosts"; done
  write_configuration "$@"
  head -c 1024 /dev/urandom >"$cluster/munge/key"
  chmod 700 "$cluster/munge"
  chmod 400 "$cluster/munge/key"
  start_hosts ctl "${nodes[@]}"
  on ctl munged --force --key-file="$cluster/munge/key" --socket="$cluster/munge/socket" --pid-file="$cluster/munge/pid" \
    --log-file="$cluster/munge/log" --seed-file="$cluster/munge/seed" 2>>"$cluster/munge/err" || fail "munged: $(cat "$cluster/munge/err")"
  on ctl slurmctld || fail "slurmctld: $(cat "$cluster/slurmctld.log")"
  for node in "${nodes[@]}"; do start_node "$node"; done
  await all_idle
  watch_jobs &
}

start_node() { on "$1" slurmd -N "$1" || fail "slurmd: $(cat "$cluster/slurmd.$1.log")"; }
all_idle() { [ "$(on ctl sinfo --noheader --Node --format='%N %T' | sort -u | grep -c ' idle$')" -eq "${#nodes[@]}" ]; }

# stop_cluster: ends every process of it, and every process that watches it or runs in it.
stop_cluster() {
  local pid
  jobs -p | xargs -r kill 2>/dev/null
  for pid in $(cat "$cluster"/*.init 2>/dev/null); do
    kill -KILL "$pid" 2>/dev/null
    while [ -e "/proc/$pid" ]; do sleep 0.05; done
  done
  wait 2>/dev/null
}

# watch_jobs: runs as long as the cluster does. One process asks for all jobs: otherwise Slurm's programs would take
# half a core.
watch_jobs() {
  while sleep 0.5; do
    on ctl scontrol --oneliner show job >"$cluster/jobs.new" 2>>"$cluster/jobs.err" && mv "$cluster/jobs.new" "$cluster/jobs"
  done
}

# write_configuration [LINE ...]: configures nodes that pretend to be as large as those of the templates' sites, with
# the partitions, features and GPUs of all sites. Slurm does not verify them here.
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
SlurmdTimeout=300
SlurmctldTimeout=300
MessageTimeout=60
TCPTimeout=30
BatchStartTimeout=120
KillWait=20
MinJobAge=3600
SchedulerParameters=sched_interval=2,sched_min_interval=200000,batch_sched_delay=0,bf_interval=1,default_queue_depth=100
$(printf '%s\n' "$@")
NodeName=$(IFS=, && echo "${nodes[*]}") CPUs=64 RealMemory=4000000 State=UNKNOWN
PartitionName=virtual Nodes=ALL Default=YES DefaultTime=10 MaxTime=INFINITE
EOF
  echo "PMIxCliTmpDirBase=/var/spool" >"$cluster/mpi.conf"
}

# submit ARGUMENTS OF SBATCH...: prints the job's number.
submit() { on ctl sbatch --parsable "$@"; }

# told JOB FIELD: prints what Slurm reports about a job, or about all jobs of an array if they agree.
told() { sed -nE "/(^| Array)JobId=$1 /s/.* $2=([^ ]*).*/\\1/p" "$cluster/jobs" 2>/dev/null | sort -u | paste -s -d ' '; }
is_in_state() { [[ $(told "$1" JobState) =~ ^($2)$ ]]; }
# await_end JOB: waits until nothing of it runs. $state and $rc are its state and exit code.
await_end() {
  await is_in_state "$1" 'COMPLETED|FAILED|CANCELLED|TIMEOUT|NODE_FAIL|OUT_OF_MEMORY'
  state=$(told "$1" JobState)
  rc=$(told "$1" ExitCode)
  rc=${rc%%:*}
}
