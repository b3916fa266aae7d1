# NCAR Derecho: what its scripts need to know, in one place. Read as `. derecho.sh cpu` or `. derecho.sh gpu`.
# From ncar-hpc-docs.readthedocs.io, May 2026, and NCAR's public scripts. Not run there yet.
device=$1
. "${BASH_SOURCE[0]%/*}/pbs.sh"
n_cores=$([[ $device == gpu ]] && echo 64 || echo 128) # of a node
export TMPDIR=${SCRATCH:?}/tmp                         # the site wants temporary files there, not in /tmp
mkdir -p "$TMPDIR"

load_modules() {
  find_modules
  module --force purge
  load ncarenv gcc ncarcompilers cray-mpich
  [[ $device == cpu ]] || load cuda # also when a program runs: without it nodes may lock up
}

# mpiexec of PALS does not look at the select line. Ranks get neighbouring cores, which are of one NUMA domain.
start_ranks() {
  local per_node=$((n_ranks / n_nodes))
  exec mpiexec -n "$n_ranks" -ppn "$per_node" -d $((n_cores / per_node)) --cpu-bind depth "$@"
}

if [[ $device == gpu ]]; then
  export MPICH_GPU_SUPPORT_ENABLED=1 # MPI on memory of GPUs
  export MPICH_OFI_NIC_POLICY=GPU    # each rank takes the network port next to its GPU
  export NCCL_SOCKET_IFNAME=hsn      # the name service of NCCL over Slingshot
  export FI_MR_CACHE_MONITOR=userfaultfd FI_CXI_DISABLE_HOST_REGISTER=1 # without them NCCL may hang (HPE's guide for NCCL)
  export FI_CXI_DEFAULT_CQ_SIZE=131072 # completions are lost when more come than fit
  export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET # says which network it uses: it falls back to sockets without a word
fi
