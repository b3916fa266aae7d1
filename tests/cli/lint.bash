#!/usr/bin/env bash
# lint: defects of the kind that tutorials' job scripts have are named by line, clean scripts pass, and batch/check says the same.
. "$(dirname "$0")/lib.bash"
root=$(cd "$(dirname "$0")/../.." && pwd)

# expect_lines FILE: stdout has a line for each comment "#! SEVERITY PATTERN" of FILE, which tells of the line after it, and
# no other errors or warnings.
expect_lines() {
  local number severity pattern n=0
  while IFS=: read -r number line; do
    read -r severity pattern <<<"${line#*#! }"
    expect_out "^$1:$((number + 1)): $severity: .*$pattern"
    [ "$severity" = note ] || n=$((n + 1))
  done < <(grep -n '^#! ' "$1")
  [ "$(grep -cE ':[0-9]+: (error|warning): ' "$folder/out")" -eq "$n" ] || fail "not $n errors and warnings"
}

cd "$folder" || exit 1
mkdir -p delta derecho ibex hipergator generic

# In the manner of tutorials for these clusters.
cat >delta/slurm_script.slurm <<'END'
#!/bin/bash
#SBATCH --job-name="reduce"
#! error at most 1
#SBATCH --nodes=2
#SBATCH --partition=gpuH200x8
#SBATCH --gpus-per-node=2
#! note 4 ranks and 2 GPUs
#SBATCH --ntasks-per-node=4
#! error 128 cores
#SBATCH --cpus-per-task=32
#! error edit line 12
#SBATCH --account=your-account-name
#! error at most 48 hours
#SBATCH -t 72:00:00
#SBATCH --mem=100G
#SBATCH --gpu-bind=closest
#! warning set -u before module in line 19
set -eu
module load anaconda3_gpu
#! error fix: MASTER_ADDR\)
export MASTER_ADDRESS=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
#! warning port 12355 is fixed
export MASTER_PORT=12355
#! error mpirun on NCSA Delta
mpirun -np 4 ./a
#! note there is no 'pytorch_reduce_all.py'
srun -c 32 python3 pytorch_reduce_all.py
#! error fix: move it above
#SBATCH --mail-type=END
END

cat >derecho/torchrun_multigpu_pbs.sh <<'END'
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
#! warning whole environment
#PBS -V
#! warning tested before it is set in line 18
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
END

cat >ibex/jobscript.sbatch <<'END'
#!/bin/bash
#! error time=... is missing
#SBATCH --gpus=2
#! error did you mean --mem\?
#SBATCH --memory=100G
#! warning v100 alone
#SBATCH --constraint=v100
#! error one = between
#SBATCH --ntasks==2
#SBATCH --cpus-per-task=16
#SBATCH --mem=50G
#! warning guess
master_ip=$(srun -n 1 -N 1 --gpus=1 -w "$head" /bin/hostname -I | cut -d " " -f 2)
#! error dash of typography
srun --cpus-per-task=4 --mpi=pmix –m ./x
#! warning torch.distributed.launch is deprecated
srun -n 1 -c 16 python -m torch.distributed.launch --use_env --nproc_per_node=2 --master_addr="$master_ip" \
  --master_port="$port" $SCRIPT
#! warning leaves no RDMA
export UCX_TLS=tcp
#! warning srun without --mpi
srun --cpus-per-task=16 ./y
END

cat >hipergator/launch_ddp.sh <<'END'
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
srun -c 4 torchrun --nnodes 2 --nproc_per_node 2 --rdzv_endpoint $head_node_ip:29500 $SCRIPT 50 10
#! error without --expect-ranks
srun --mpi=$HPC_PMIX --cpus-per-task=4 reduce_all -b 8
END

for script in delta/slurm_script.slurm derecho/torchrun_multigpu_pbs.sh ibex/jobscript.sbatch hipergator/launch_ddp.sh; do
  run "$REDUCE_ALL" lint "$script"
  expect_rc 1
  expect_lines "$script"
  [ -s "$folder/err" ] && fail "nothing belongs on stderr"
done

# What bash cannot read to its end, without running it; each command of lockstep is known.
cat >generic/broken.sh <<'END'
#!/bin/bash -l
touch executed
for i in 1 2; do
  echo "$i"
#! error syntax error near unexpected token
fi
END
printf 'touch executed\n' >bash_env
BASH_ENV=$PWD/bash_env run "$REDUCE_ALL" lint generic/broken.sh
expect_rc 1
expect_lines generic/broken.sh
[ ! -e executed ] || fail "it was executed"
# What bash can read and this program cannot is not passed over in silence.
cat >generic/unread.sh <<'END'
#!/bin/bash
#! warning not read from line 3 on
names[$(echo "]")]=3
lockstep trian toy
END
run "$REDUCE_ALL" lint generic/unread.sh
expect_rc 1
expect_lines generic/unread.sh
printf '#!/bin/csh\nif (1) then\n' >generic/other.csh
run "$REDUCE_ALL" lint generic/other.csh
expect_rc 0
"$REDUCE_ALL" --help | sed -n '/^Commands/,/^$/s/^  \([a-z]*\) .*/lockstep \1/p' >generic/commands.sh
[ "$(wc -l <generic/commands.sh)" -ge 5 ] || fail "which commands are there?"
run "$REDUCE_ALL" lint generic/commands.sh
expect_rc 0

# Clean ones give nothing but the last line; a placeholder of a template is only noted.
cat >delta/clean.sbatch <<'END'
#!/bin/bash
#SBATCH --account=abcd-delta-gpu
#SBATCH --partition=gpuA100x4
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=16
#SBATCH --gpus-per-node=4
#SBATCH --gpu-bind=none
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --time=00:20:00
#SBATCH --no-requeue
module reset
module load cudatoolkit craype-accel-nvidia80 cray-hdf5-parallel aws-ofi-nccl
export MPICH_GPU_SUPPORT_ENABLED=1 NCCL_SOCKET_IFNAME=hsn NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET
srun --cpus-per-task="$SLURM_CPUS_PER_TASK" --cpu-bind=cores reduce_all --expect-ranks="$SLURM_NTASKS"
END
cat >derecho/clean.pbs <<'END'
#!/bin/bash
#PBS -N reduce_all
#PBS -A CHANGE_ME
#PBS -q main
#PBS -l walltime=00:20:00
#PBS -l select=2:ncpus=64:mpiprocs=4:ngpus=4
#PBS -l job_priority=regular
#PBS -j oe
#PBS -k eod
cd "$PBS_O_WORKDIR" || exit
module --force purge
module load ncarenv gcc ncarcompilers cuda cray-mpich hdf5-mpi
export MPICH_GPU_SUPPORT_ENABLED=1 MPICH_OFI_NIC_POLICY=GPU
nodes=$(sort -u "$PBS_NODEFILE" | wc -l)
mpiexec -n $((4*nodes)) -ppn 4 -d 16 --cpu-bind depth reduce_all --expect-ranks=$((4*nodes))
END
run "$REDUCE_ALL" lint delta/clean.sbatch
expect_rc 0
[ "$(cat out)" = '1 script judged as of delta: 0 errors, 0 warnings, 0 notes' ] || fail "not clean"
run "$REDUCE_ALL" lint delta/clean.sbatch derecho/clean.pbs
expect_rc 0
expect_out '^derecho/clean.pbs:3: note: edit this line'
expect_out '^2 scripts judged as of delta, derecho: 0 errors, 0 warnings, 1 note$'

# Which site: --site, then the mark, then the library that it sources, then the folder; generic has no limits.
sed 's/CHANGE_ME/me/; s/select=2/select=2000/' derecho/clean.pbs >generic/big.pbs
run "$REDUCE_ALL" lint generic/big.pbs
expect_rc 0
run "$REDUCE_ALL" lint --site derecho generic/big.pbs
expect_rc 1
expect_out 'at most 82'
sed '1a # lockstep: site=derecho' generic/big.pbs >generic/marked.pbs
run "$REDUCE_ALL" lint generic/marked.pbs
expect_rc 1
run "$REDUCE_ALL" lint --site generic generic/marked.pbs
expect_rc 0
mkdir -p elsewhere
for name in derecho generic-pbs; do
  sed "/^cd /a . \"\${LOCKSTEP_ROOT:?}/share/lockstep/batch/lib/$name.sh\" gpu" generic/big.pbs >elsewhere/$name.pbs
done
run "$REDUCE_ALL" lint elsewhere/derecho.pbs
expect_rc 1
expect_out 'at most 82'
expect_out '^1 script judged as of derecho: '
run "$REDUCE_ALL" lint elsewhere/generic-pbs.pbs
expect_rc 0
expect_out '^1 script judged as of generic: 0 errors, 0 warnings, 0 notes$'
cp generic/big.pbs elsewhere/
run "$REDUCE_ALL" lint elsewhere/big.pbs
expect_rc 0
expect_out '^elsewhere/big.pbs:1: note: which cluster it is for is not known, .*fix: --site S: one of delta, '

# As JSON, to a file and to stdout.
run "$REDUCE_ALL" lint delta/slurm_script.slurm delta/clean.sbatch --json f.json
expect_rc 1
expect_out '^2 scripts judged as of delta: '
run "$REDUCE_ALL" lint delta/slurm_script.slurm delta/clean.sbatch --json -
expect_rc 1
cmp -s out f.json || fail "stdout and file differ"
if python3 -c 'import jsonschema' 2>/dev/null; then
  python3 - "$root/share/schemas/lint-1.schema.json" f.json <<'PY' || fail "not the JSON it should be"
import json, jsonschema, sys
schema, document = (json.load(open(path)) for path in sys.argv[1:])
jsonschema.Draft202012Validator(schema).validate(document)
first, second = document["scripts"]
assert not document["clean"] and first["site"] == "delta" and second["findings"] == [], document
assert sum(document["counts"].values()) == len(first["findings"]), document["counts"]
assert any(one["line"] == 12 and one["severity"] == "error" for one in first["findings"]), first
PY
fi

# Bad input is one message.
expect_refused() {
  expect_rc 2
  expect_one_error
  expect_err "$1"
}
run "$REDUCE_ALL" lint
expect_refused FILE
run "$REDUCE_ALL" lint not_there.sbatch
expect_refused not_there.sbatch
run "$REDUCE_ALL" lint --site detla delta/clean.sbatch
expect_refused "did you mean 'delta'"
expect_err 'hipergator'
printf '#!/bin/bash\n# lockstep: site=nowhere\n' >marked
run "$REDUCE_ALL" lint marked
expect_refused marked:2
printf 'ELF\0\1' >binary
run "$REDUCE_ALL" lint binary
expect_refused 'not a text file'
run "$REDUCE_ALL" lint delta
expect_refused delta
run "$REDUCE_ALL" lint delta/clean.sbatch --json no/such/folder/f.json
expect_refused no/such/folder
printf '[here]\ntitel = "x"\n' >sites.toml
LOCKSTEP_SITES=sites.toml run "$REDUCE_ALL" lint delta/clean.sbatch
expect_refused "did you mean 'title'"
run_full "$REDUCE_ALL" lint delta/clean.sbatch
expect_full

# A site of one's own.
printf '[delta]\ntitle = "Mine"\n[delta.partition]\ngpuA100x4 = {most = 1}\n' >sites.toml
LOCKSTEP_SITES=sites.toml run "$REDUCE_ALL" lint delta/clean.sbatch
expect_rc 1
expect_out '2 nodes'

printf '[mine]\ntitle = "Mine"\n' >sites.toml
LOCKSTEP_SITES=sites.toml run "$REDUCE_ALL" lint delta/clean.sbatch
expect_rc 0
expect_out '^1 script judged as of generic: '
: >sites.toml
LOCKSTEP_SITES=sites.toml run "$REDUCE_ALL" lint --site delta delta/clean.sbatch
expect_refused 'expected: .*generic'
printf '[mine]\ntitle = "K\303\266ln"\n' >sites.toml
LOCKSTEP_SITES=sites.toml run "$REDUCE_ALL" lint delta/clean.sbatch
expect_refused 'sites.toml:2'

# batch/check finds the program, and says the same.
run "$REDUCE_ALL" lint delta/slurm_script.slurm
cp out lint_out
LOCKSTEP=$REDUCE_ALL run "$root/batch/check" delta/slurm_script.slurm
expect_rc 1
cmp -s out lint_out || fail "check says something else"
mkdir -p prefix/bin prefix/share/lockstep/batch
ln -s "$REDUCE_ALL" prefix/bin/lockstep
cp "$root/batch/check" prefix/share/lockstep/batch/
run prefix/share/lockstep/batch/check --site delta delta/clean.sbatch
expect_rc 0
LOCKSTEP=/not/there run "$root/batch/check" delta/clean.sbatch
expect_rc 2
expect_err 'no lockstep to be found'

# What is shipped is clean.
shopt -s nullglob
shipped=("$root"/batch/*/*.sbatch "$root"/batch/*/*.pbs)
if ((${#shipped[@]})); then
  run "$REDUCE_ALL" lint "${shipped[@]}"
  expect_rc 0
fi
