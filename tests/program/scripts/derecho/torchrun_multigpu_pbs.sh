#!/bin/bash
#PBS -A MYPROJECT
#! error -N, the name of the job
#PBS -n torch
#! error at most 12 hours
#PBS -l walltime=24:00:00
#! error at most 4
#PBS -l select=2:ncpus=64:ngpus=8:mpiprocs=4
#! error resource of a chunk
#PBS -l gpu_type=a100
#PBS -q main
#PBS -V
#! warning tested before line 17 sets it
if [ "$ENABLE_NCCL_OFI" = true ]; then
  export NCCL_CROSS_NIC=1
fi
ENABLE_NCCL_OFI=true
#! error fix: NCCL_IB_DISABLE\)
export NCCL_DISABLE_IB=1
#! error NCCL_NET_GDR_LEVEL=PBH.*PHB
export NCCL_NET_GDR_LEVEL=PBH
#! warning NCCL_SHM_DISABLE=1
export NCCL_SHM_DISABLE=1 NCCL_P2P_DISABLE=1
#! error srun on NCAR Derecho
srun -n 2 ./a
#! warning 4 times a node
mpiexec -n 8 --ppn 4 torchrun --nproc-per-node=4 $SCRIPT
