# NCAR Derecho: all facts that its scripts need. Source it as `. derecho.sh cpu` or `. derecho.sh gpu`.
# From ncar-hpc-docs.readthedocs.io, May 2026, and NCAR's public scripts. Not run there yet.
device=$1
. "${BASH_SOURCE[0]%/*}/pbs.sh"
[[ ${SCRATCH:-} ]] || give_up "SCRATCH is not set" "qsub -v LOCKSTEP_ROOT,SCRATCH=/glade/derecho/scratch/\$USER $0"
export TMPDIR=$SCRATCH/tmp # the site wants temporary files there, not in /tmp
mkdir -p "$TMPDIR" || give_up "cannot make '$TMPDIR'" "SCRATCH must be a folder of yours"

load_modules() {
  find_modules
  module --force purge
  load ncarenv gcc ncarcompilers cray-mpich
  [[ $device == gpu ]] || return 0
  load cuda # needed at run time too: without it nodes may lock up
  ask_for_mpi_on_gpus
}

# mpiexec of PALS ignores the select line. Ranks get neighbouring cores of one NUMA domain, as many as ompthreads in that line, which PBS
# sets as OMP_NUM_THREADS.
start_ranks() { exec mpiexec -n "$n_ranks" -ppn $((n_ranks / n_nodes)) -d "${OMP_NUM_THREADS:-1}" --cpu-bind depth "$@"; }

if [[ $device == gpu ]]; then
  export MPICH_OFI_NIC_POLICY=GPU # each rank uses the network port next to its GPU
  export NCCL_SOCKET_IFNAME=hsn   # NCCL's bootstrap uses Slingshot
  export FI_MR_CACHE_MONITOR=userfaultfd FI_CXI_DISABLE_HOST_REGISTER=1 # without them NCCL may hang (HPE's guide for NCCL)
  # NCCL and its plugin aws-ofi-nccl are not modules there: build them, and set NCCL_NET_PLUGIN to the plugin's path.
  export NCCL_CROSS_NIC=1       # rings may enter and leave a node by different ports of its four
  export NCCL_NET_GDR_LEVEL=PHB # GPUs send directly, without the host, to ports of their own part of the node
  ((n_nodes == 1)) || export NCCL_NET='AWS Libfabric' # without the plugin a job ends instead of using sockets
  export FI_CXI_DEFAULT_CQ_SIZE=131072 # if the queue overflows, completions are lost
fi
