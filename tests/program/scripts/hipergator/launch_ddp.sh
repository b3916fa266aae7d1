#!/bin/bash
#SBATCH --account=ai-workshop
#SBATCH --qos=ai-workshop
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=24gb
#SBATCH --time=48:00:00
#! error geforece.*geforce
#SBATCH --gres=gpu:geforece:2
#! note hpg-ai
#SBATCH --partition=hpg-ai
nodes=( $( scontrol show hostnames $SLURM_JOB_NODELIST ) )
#! error keeps one element of the list nodes
nodes_array=($nodes)
#! warning port 29500 is fixed
srun -c 4 torchrun --nnodes 2 --nproc_per_node 2 --rdzv_backend c10d --rdzv_endpoint $head_node_ip:29500 $SCRIPT 50 10
#! error without --expect-ranks
srun --mpi=$HPC_PMIX --cpus-per-task=4 reduce_all -b 8
