// What job scripts mean: pairs of options, launches, nodes, signals. A row is the only error or warning of its script.
#include <gtest/gtest.h>

#include "unit/site/findings.hpp"

namespace lockstep::site {
namespace {

const std::string job = "#SBATCH -n 4\n#SBATCH --time=10\n";
const std::string two_nodes = "#SBATCH -N 2\n#SBATCH --ntasks-per-node=1\n";
const std::string catching = "#SBATCH --signal=B:USR1@60\n";
const Site any{.name = "generic", .title = "any"};

/// Each has its finding, and no other error or warning.
void expect_only(const std::string& header, const std::vector<Case>& cases) {
  expect_all(cases, any, header);
  for (const Case& one : cases) {
    const auto findings = lint(header + one.text);
    const auto n_bad = std::ranges::count_if(findings, [](const Finding& f) { return f.severity != note; });
    EXPECT_EQ(n_bad, one.severity == note ? 0 : 1) << one.text << listed(findings);
  }
}

void expect_nothing(const std::string& header, const std::vector<const char*>& texts) {
  for (const char* const text : texts) EXPECT_EQ(listed(lint(header + text)), "") << text;
}

TEST(ScriptRules, ValuesOfTheirKind) {
  expect_only(job,
              {{"#SBATCH --mem=0.5G\n", 1, error, "512M"},
               {"#SBATCH --mail-type=ENDED\n", 1, error, "a list of NONE, BEGIN, END"},
               {"#SBATCH --chdir=~/w\n", 1, error, "~ is taken for a folder"},
               {"#SBATCH --output=~/logs/%j\n", 1, error, "written out"},
               {"#SBATCH --workdir=/w\n", 1, error, "Slurm 17.11 removed --workdir"},
               {"#SBATCH -a 0-3\n#SBATCH --output=log_%A.out\n", 2, warning, "all jobs of the array write into one"},
               {"#SBATCH -a 0-3\n#SBATCH -e err.txt\n", 2, warning, "%A_%a"},
               {"#SBATCH --mem\n", 1, error, "--mem has no value"},
               {"#SBATCH --requeue --hold=yes\n", 1, error, "but takes none"},
               {"#SBATCH --dependency=afterok\n", 1, error, "afterok:JOB"},
               {"#SBATCH --open-mode=add\n", 1, error, "one of append, truncate"},
               {"#SBATCH --exclusive=node\n", 1, error, "user"},
               {"#SBATCH --segment=4\n", 1, note, "newer than Slurm 22.05"},
               {"#SBATCH --begin=tomorow\n", 1, error, "now+1hour, or one of now, today, tomorrow"},
               {"#SBATCH --deadline=soon\n", 1, error, "2026-01-31T12:00"},
               {"#SBATCH --distribution=blocked\n", 1, error, "some of block, cyclic"},
               {"#SBATCH -m block:cylic\n", 1, error, "some of block, cyclic"},
               {"srun --mpi=pmx ./x\n", 1, error, "one of none, pmi2, pmix"},
               {"srun -m blocked ./x\n", 1, error, "srun refuses it"},
               {"srun --mem=0.5G ./x\n", 1, error, "srun refuses it"},
               {"srun --ntaks=4 ./x\n", 1, error, "did you mean --ntasks?"}});
  expect_nothing(
      job, {"#SBATCH --mail-type=end,FAIL\n", "#SBATCH --chdir=/home/me\n", "#SBATCH -a 0-3\n#SBATCH -o %x_%4a.out\n",
            "#SBATCH -a 0-3\n#SBATCH -o /dev/null\n", "#SBATCH --output=log.out\n", "#SBATCH --mem=512M\n",
            "srun -o ~/x --mem=$M ./x\nM=1\n", "srun --of-a-plugin ./x\n"});
  for (const std::string time : {"16:00", "now+1hour", "\"12:00 PM\"", "2027-01-20T12:34:00", "noon", "Tomorrow",
                                 "\"teatime today\"", "010227", "now", "\"now + 1 hour\"", "tomorrow-noon"})
    expect_nothing(job, {("#SBATCH --begin=" + time + "\n").c_str()});
  for (const std::string way :
       {"block", "*:cyclic:fcyclic", "plane=4", "cyclic,Pack", "NoPack", "hostfile", "arbitrary"})
    expect_nothing(job, {("#SBATCH --distribution=" + way + "\n").c_str()});
  for (const std::string plugin : {"pmix", "pmix_v4", "pmi1", "cray_shasta", "list", "own", "openmpi", "pmi2", "none"})
    expect_nothing(job, {("srun --mpi=" + plugin + " ./x\n").c_str()});
}

TEST(ScriptRules, MoreThanThereIs) {
  expect_only("", {{"#SBATCH -N 4\n#SBATCH -n 2\n", 2, warning, "2 tasks on 4 nodes"},
                   {"#SBATCH -N 4 -n 1\n", 1, warning, "1 task on 4 nodes"},
                   {"#SBATCH -N 3-4 -n 2\n", 1, warning, "2 tasks on 3 nodes"},
                   {"srun -N 4 -n 2 ./x\n", 1, warning, "2 tasks on 4 nodes"},
                   {"#PBS -l select=2:ncpus=8:mpiprocs=16\n", 1, warning, "16 ranks on 8 cores"},
                   {"#PBS -l select=1:ncpus=4+1:ncpus=1:mpiprocs=4\n", 1, warning, "4 ranks on 1 core"},
                   {"#PBS -l select=2:ncpus=4\nmpiexec -n 16 ./a\n", 2, error, "the job has 8 cores for them"}});
  expect_nothing("", {"#PBS -l select=2:ncpus=4\nmpiexec -n 8 ./a\n", "#PBS -l select=1:ngpus=4\nmpiexec -n 4 ./a\n",
                      "#PBS -l select=2:ncpus=4 -l place=scatter:excl\nmpiexec -n 16 ./a\n",
                      "#PBS -l select=2:ncpus=4:mpiprocs=8 -l place=excl\n", "#PBS -l walltime=1\nmpiexec -n 16 ./a\n",
                      "#SBATCH -N 1 -c 4\nsrun -c 1 -n 8 ./a\n"});
  expect_nothing("", {"#SBATCH -N 4 -n 4\n", "#SBATCH -N 2-4 -n 2\n", "#SBATCH -N 4\n#SBATCH --ntasks-per-node=1\n",
                      "srun -N 1 -n 1 ./x\n", "#SBATCH -N 4\nsrun -n 2 ./x\n", "srun -N $N -n 2 ./x\nN=1\n",
                      "#PBS -l select=2:ncpus=8:mpiprocs=8\n", "#PBS -l select=2:mpiprocs=8\n",
                      "#SBATCH -n 2\n#SBATCH hetjob\n#SBATCH -N 4\n"});
}

TEST(ScriptRules, OptionsThatDoNotGoTogether) {
  expect_only(job, {{"#SBATCH --mem=1G\n#SBATCH --mem-per-cpu=1G\n", 2, error, "exclude each other"},
                    {"#SBATCH --exclusive\n#SBATCH --oversubscribe\n", 2, warning, "the last one counts"},
                    {"#SBATCH --no-requeue\n#SBATCH --requeue\n", 2, warning, "opposites"},
                    {"#SBATCH -c 4 --cpus-per-gpu=2\n", 1, error, "exclude each other"},
                    {"#SBATCH --hint=nomultithread --threads-per-core=1\n", 1, error, "exclude each other"},
                    {"#SBATCH --ntasks-per-gpu=1 --gpus-per-task=1\n", 1, error, "exclude each other"},
                    {"#SBATCH --mem-per-gpu=1G\n", 1, warning, "without any of --gpus"},
                    {"#SBATCH -n 8\n", 1, warning, "again, after line 1"}});
  expect_nothing(job, {"#SBATCH -n 4\n", "#SBATCH --mail-type=END\n#SBATCH --mail-type=FAIL\n",
                       "#SBATCH --gpus=4 --mem-per-gpu=1G\n"});
}

TEST(ScriptRules, ResourcesOfPbs) {
  expect_only("", {{"#PBS -l select=2:ncpus=4:walltime=10\n", 1, error, "-l walltime=10 by itself"},
                   {"#PBS -l select=2:ncpus=4:ncpus=8\n", 1, error, "ncpus twice"},
                   {"#PBS -l select=2:ncpus\n", 1, error, "the part 'ncpus'"},
                   {"#PBS -l select=2:ncpus=4:\n", 1, error, "the part ''"},
                   {"#PBS -l select=2:ncpus=4:mem=1.5gb\n", 1, error, "480gb"},
                   {"#PBS -l select=2:mpiprocs=0\n", 1, error, "a whole number from 1"},
                   {"#PBS -l select=1:ncpus=4+2:npcus=4\n", 1, warning, "did you mean ncpus?"},
                   {"#PBS -l select=2:ncpus=4 -l mem=4gb\n", 1, error, "select=...:mem=4gb"},
                   {"#PBS -l mpiprocs=4\n", 1, error, "resource of a chunk"},
                   {"#PBS -l select=1:ncpus=4 -l place=scater\n", 1, error, "scatter"},
                   {"#PBS -l select=1:ncpus=4 -l place=scatter:pack\n", 1, error, "not 'pack' there: with colons"},
                   {"#PBS -l select=1:ncpus=4 -l place=SCATTER\n", 1, error, "not 'SCATTER' there"},
                   {"#PBS -l select=1:ncpus=4 -l place=excl:pack:shared\n", 1, error, "not 'shared' there"},
                   {"#PBS -l select=1:ncpus=4 -l place=free:excl:shared\n", 1, error, "not 'shared' there"},
                   {"#PBS -l select=1:ncpus=4 -l place=group=a:group=b\n", 1, error, "not 'group=b' there"},
                   {"#PBS -l select=1:ncpus=4 -l place=pack:group=\n", 1, error, "group=RESOURCE"},
                   {"#PBS -l select=1:ncpus=4 -l place=pack:exclusive\n", 1, error, "excl/shared/exclhost"},
                   {"#PBS -l select=1:ncpus=4 -l place=scatter:\n", 1, error, "no empty part: with colons between"},
                   {"#PBS -l place=scatter\n", 1, error, "without -l select"},
                   {"#PBS -l ncpus=4 -l walltime=10\n#PBS -l walltime=20\n", 2, warning, "again, after line 1"},
                   {"#PBS -l select=1:ncpus=4 -l place=free\n#PBS -l place=pack\n", 2, warning, "-l place again"},
                   {"#PBS -l nodes=2:ppn=4 -l select=1:ncpus=4\n", 1, error, "older form"},
                   {"#PBS -l waltime=10\n", 1, warning, "did you mean walltime?"},
                   {"#PBS -l walltime=10m\n", 1, error, "HH:MM:SS"},
                   {"#PBS -j both\n", 1, error, "one of oe, eo, n"},
                   {"#PBS -r yes\n", 1, error, "one of y, n"},
                   {"#PBS -o ~/log\n", 1, warning, "written out"},
                   {"#PBS -N my job\n", 1, error, "fix: write -N VALUE, with no blank in the value"}});
  expect_nothing(
      "", {"#PBS -V\n", "#PBS -l select=2:ncpus=64:mpiprocs=4:ngpus=4:mem=480gb+1:ncpus=128\n",
           "#PBS -l select=1:ncpus=4 -l place=pack:exclhost:group=rack\n",
           "#PBS -l select=1:ncpus=4 -l place=vscatter:group=switch\n", "#PBS -l select=1:ncpus=4 -l place=shared\n",
           "#PBS -l select=1:ncpus=4 -l place=excl:scatter\n", "#PBS -l select=1:ncpus=4 -l place=shared:scatter\n",
           "#PBS -l select=1:ncpus=4 -l place=scatter:group=host:excl\n",
           "#PBS -l select=1:ncpus=4 -l place=pack\n#PBS -l place=pack\n", "#PBS -l nodes=2:ppn=4,walltime=10:00\n",
           "#PBS -l ncpus=4,mem=4gb\n", "#PBS -k oed -m abe -j oe\n",
           "#PBS -l select=1:ncpus=4:own_thing=x -l place=scatter:excl,filesystems=home\n"});
}

TEST(ScriptRules, WhatIsSwitchedOffIsNoFinding) {
  expect_nothing(job, {"# #SBATCH --nodes=two\n", "## SBATCH --nodes=2\n", "##SBATCH --mem=1G\n", "#  #PBS -q main\n"});
}

TEST(ScriptRules, LaunchesWithinLaunches) {
  expect_only(job, {{"srun mpirun -np 4 x\n", 1, error, "starts mpirun once for each"},
                    {"mpirun -np 4 srun -n 4 x\n", 1, error, "starts srun once for each"},
                    {"srun \\ \n  ./x\n", 1, error, "a blank after the last backslash"},
                    {"srun bash -c \"echo $SLURM_PROCID\"\n", 1, error, "single quotes: bash -c"},
                    {"srun bash -c \"echo $(hostname)\"\n", 1, error, "$(hostname) is filled in before"},
                    {"srun ./x --rank $SLURM_PROCID\n", 1, error, "all ranks get the same"},
                    {"export RANK=$SLURM_PROCID\nsrun ./x\n", 1, error, "in the script it is 0"},
                    {"RANK=$OMPI_COMM_WORLD_RANK mpirun -np 4 ./x\n", 1, error, "in the script it is empty"},
                    {"export SIZE=$OMPI_COMM_WORLD_SIZE\nmpirun -np 4 ./x\n", 1, error, "in the script it is empty"},
                    {"srun --export=ALL,RANK=$SLURM_PROCID ./x\n", 1, error, "bash -c 'export NAME=$SLURM_PROCID;"},
                    {"mpirun -np 4 -x RANK=$OMPI_COMM_WORLD_RANK ./x\n", 1, error, "before mpirun starts the ranks"},
                    {"srun -o log.$SLURM_PROCID ./x\n", 1, error, "%t, which srun fills in for each rank"},
                    {"srun --cpu-bind=map_cpu:${SLURM_LOCALID} ./x\n", 1, error, "$SLURM_LOCALID is filled in before"},
                    {"srun env RANK=$PMI_RANK ./x\n", 1, error, "all ranks get the same"},
                    {"srun ./x --hosts \"$SLURM_STEP_NODELIST\"\n", 1, error, "all ranks get the same"},
                    {"export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK\nsrun ./x\n", 1, warning, "without --cpus-per-task"},
                    {"srun -N $SLURM_GPUS_PER_NODE ./x\n", 1, warning, "without --gpus-per-node"}});
  expect_nothing(
      job, {"srun -n 1 mpirun -np 4 x\n", "srun bash -c 'echo $SLURM_PROCID $(hostname)'\n",
            "srun bash -c \"echo \\$SLURM_PROCID\"\n", "srun ./x \\\n  --y\n", "echo $SLURM_PROCID\n",
            "srun --export=ALL,JOB=$SLURM_JOB_ID ./x\n", "srun -o log.%t ./x\n", "srun -o 'log.$SLURM_PROCID' ./x\n",
            "srun bash -c 'export RANK=$SLURM_PROCID; exec ./x'\n", "srun ./x\nexport RANK=$SLURM_PROCID\n",
            "# srun \\ \nsrun ./x\n", "export OMP_NUM_THREADS=${SLURM_CPUS_PER_TASK:-1}\nsrun ./x\n",
            "#SBATCH -c 4\nexport OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK\nsrun -c 4 ./x\n"});
  expect_nothing("", {"export RANK=$SLURM_PROCID\nexec \"$@\"\n"});  // what srun starts
}

TEST(ScriptRules, JobsOfSeveralNodes) {
  expect_only(
      two_nodes,
      {{"export MASTER_ADDR=127.0.0.1\nsrun ./x\n", 1, error, "ranks of different nodes do not meet"},
       {"export NCCL_SOCKET_IFNAME=lo\nsrun ./x\n", 1, error, "the network between nodes"},
       {"srun torchrun --nnodes=2 --rdzv_backend=c10d --rdzv_endpoint=localhost:$P x.py\nP=1\n", 1, error,
        "scontrol show hostnames"},
       {"torchrun --nnodes=2 x.py\n", 1, error, "runs on the first node alone"},
       {"srun torchrun --nnodes=4 x.py\n", 1, error, "--nnodes=4 in a job of 2 nodes"},
       {"srun torchrun --nnodes=1 x.py\n", 1, error, "the other nodes are idle"},
       {"srun torchrun --nproc_per_node=4 x.py\n", 1, error, "each node trains by itself"},
       {"#SBATCH --gpus-per-node=4\nsrun python x.py\n", 0, warning, "3 of them are idle"},
       {"#SBATCH --gpus-per-node=2\nsrun torchrun --nnodes=2 --nproc_per_node=4 --node_rank=$r --master_addr=$h x.py\n",
        2, warning, "--nproc_per_node=4 with 2 GPUs a node"},
       {"srun torchrun --nnodes=2 --nproc_per_node=4 x.py\n", 1, error,
        "on 2 nodes without an address where they meet"},
       {"srun torchrun --nnodes=2 --rdzv_backend=c10d --master_addr=$h x.py\n", 1, error, "without an address"},
       {"srun torchrun --nnodes=2 --rdzv_endpoint=$h:$p x.py\n", 1, error, "each node takes itself for the first"},
       {"srun torchrun --nnodes=2 --master_addr=$h x.py\n", 1, error, "without --node_rank"},
       {"srun torchrun --standalone --nproc_per_node=4 x.py\n", 1, error, "with --standalone"},
       {"srun accelerate launch x.py\n", 1, warning, "accelerate on 2 nodes without --num_machines"},
       {"srun accelerate launch --num_machines=4 x.py\n", 1, error, "--num_machines=4 in a job of 2 nodes"},
       {"srun accelerate launch --num-machines 2 --main_process_ip $h x.py\n", 1, warning, "without --machine_rank"},
       {"srun python3 -m accelerate.commands.launch --num_machines 2 x.py\n", 1, warning, "without an address"},
       {"srun accelerate launch --num_machines=2 --rdzv_backend=c10d --main_process_ip=127.0.0.1 x.py\n", 1, error,
        "ranks of different nodes do not meet"},
       {"accelerate launch --num_machines 2 x.py\n", 1, error, "runs on the first node alone"},
       {"deepspeed x.py\n", 1, error, "deepspeed on 2 nodes without --hostfile the other nodes are idle"},
       {"deepspeed --hostfile=h --num_nodes 4 x.py\n", 1, error, "--num_nodes=4 in a job of 2 nodes"},
       {"srun deepspeed --hostfile=h --num_gpus=4 x.py\n", 1, error, "each node starts the ranks of all"},
       {"srun deepspeed --num_gpus=4 x.py\n", 1, error, "each node trains by itself"},
       {"srun apptainer exec --nv -B /a:/b x.sif torchrun --nproc_per_node=4 x.py\n", 1, error,
        "each node trains by itself"},
       {"singularity -q exec x.sif torchrun --nnodes=2 x.py\n", 1, error, "runs on the first node alone"},
       {"srun singularity run --bind=/a x.sif python -m torch.distributed.run --nnodes=4 x.py\n", 1, error,
        "--nnodes=4 in a job of 2 nodes"},
       {"for n in $(scontrol show hostnames $SLURM_JOB_NODELIST); do\n  ssh $n ./x &\ndone\nwait\n", 2, warning,
        "srun --ntasks-per-node=1"},
       {"nodes=($(scontrol show hostnames))\nssh -n me@${nodes[1]} \"cd w; ./x\"\n", 2, warning, "ssh to nodes"},
       {"pdsh -w $(scontrol show hostnames | paste -sd,) ./x\n", 1, warning, "pdsh to nodes of the job"},
       {"cp -r data $TMPDIR\nsrun ./x $TMPDIR/data\n", 1, warning, "the other nodes do not get the files"},
       {"tar -xf data.tar -C /tmp\n", 1, warning, "sbcast"}});
  expect_nothing(two_nodes,
                 {"export MASTER_ADDR=$(hostname)\nsrun ./x\n",
                  "srun -N 1 -n 1 torchrun --nnodes=1 x.py\n",
                  "srun torchrun --nnodes=$SLURM_NNODES --rdzv_backend=c10d --rdzv_endpoint=$h:$p x.py\n",
                  "srun torchrun --nnodes=2 --node_rank=$r --master_addr=$h x.py\n",
                  "export PET_MASTER_ADDR=$h\nsrun torchrun --nnodes=2 x.py\n",
                  "srun bash -c 'torchrun --nnodes=2 --node_rank=$SLURM_NODEID --master_addr=$h x.py'\n",
                  "srun accelerate launch --num_machines=2 --machine_rank=$r --main_process_ip=$h x.py\n",
                  "srun accelerate launch --num_machines=2 --rdzv_backend=c10d --main_process_ip=$h x.py\n",
                  "srun accelerate launch --config_file c.yaml x.py\n",
                  "accelerate config\n",
                  "deepspeed --hostfile=$f x.py\n",
                  "deepspeed --hostfile=$f --num_nodes=2 x.py\n",
                  "srun deepspeed --hostfile=$f --no_ssh --node_rank=$r --master_addr=$h x.py\n",
                  "srun -N 1 -n 1 deepspeed --hostfile=$f x.py\n",
                  "srun apptainer exec x.sif ./x torchrun\n",
                  "apptainer pull torchrun x.sif\n",
                  "srun apptainer exec --nv x.sif torchrun --nnodes=2 --node_rank=$r --master_addr=$h x.py\n",
                  "nodes=$(scontrol show hostnames)\nssh $GATE \"echo $nodes\"\nGATE=a\n",
                  "for i in 1 2; do ssh login$i ./x; done\n",
                  "accelerate launch --config_file c.yaml x.py\n",
                  "srun torchrun $ARGS x.py\nARGS=1\n",
                  "srun --ntasks-per-node=1 cp -r data $TMPDIR\n",
                  "cp $TMPDIR/out .\n"});
  expect_nothing("#SBATCH -N 1\n", {"export MASTER_ADDR=127.0.0.1\nsrun ./x\n", "torchrun x.py\n", "cp a $TMPDIR\n"});
  expect_only("#PBS -l select=2:ncpus=4\n",
              {{"for n in `sort -u $PBS_NODEFILE`; do ssh $n ./x; done\n", 1, warning, "fix: pbsdsh"}});
  EXPECT_TRUE(has(lint("#SBATCH -N 1 --ntasks-per-node=4\nsrun cp a $TMPDIR\n"), 2, warning, "4 times on each node"));
  EXPECT_TRUE(has(lint(two_nodes + "#SBATCH --gpus-per-node=4\nsrun bash run.sh\n"), 2, note, "1 rank and 4 GPUs"));
}

TEST(ScriptRules, SignalsAndTraps) {
  expect_only(job,
              {{"#SBATCH --signal=B:USR1@60\ntrap 'kill $!' USR1\nsrun ./x\n", 3, error, "in the foreground"},
               {"trap save TERM\nfor i in 1 2; do srun ./x $i; done\n", 2, error, "put & behind it"},
               {"#SBATCH --signal=USR1@60\ntrap save USR1\nsrun ./x &\nwait\n", 2, error, "--signal=B:USR1@60"},
               {"#SBATCH --signal=B:USR1@60\nsrun ./x\n", 1, error, "without a trap for USR1"},
               {"#SBATCH --signal=B:USR1@60\ntrap save USR2\nsrun ./x &\nwait\n", 1, error, "without a trap for USR1"},
               {"srun ./x &\n", 1, error, "no wait after it"},
               {"for i in 1 2; do\n  srun ./x &\ndone\necho done\n", 2, error, "no wait after it"},
               {"#SBATCH --signal=USR1@600\nsrun ./x\n", 1, warning, "as soon as the job starts"},
               {"#SBATCH --signal=B:USR1@900\ntrap a USR1\nsrun ./x &\nwait\n", 1, warning, "less than 600"}});
  expect_only("", {{"#PBS -r n\nqrerun $PBS_JOBID\n", 2, error, "#PBS -r y"},
                   {"#PBS -r n\ntrap 'qrerun $PBS_JOBID' TERM\n", 2, error, "qrerun in a job with -r of line 1"},
                   {"#PBS -l walltime=10\ntrap save TERM\nmpiexec ./x\n", 3, error, "in the foreground"}});
  expect_nothing(job + catching,
                 {"trap 'kill -USR1 $!' USR1\nsrun ./x &\nwait\n", "trap '' USR1\nsrun ./x\n", ". ./lib.sh\nsrun ./x\n",
                  "trap a 10\n(srun ./x; b) &\nwait\n", "trap a SIGUSR1\nfor i in 1 2; do\n  srun ./x\ndone &\nwait\n",
                  "trap a USR1\nsrun ./x | tee log &\nwait\n", "trap a USR1\nif b; then srun ./x & fi\nwait\n"});
  expect_nothing(job, {"trap 'rm -f x' EXIT\nsrun ./x\n", "trap - TERM\nsrun ./x\n",
                       "#SBATCH --signal=USR1@60\nsrun ./x\n", "srun nvidia-smi &\nsrun ./x\n", "srun ./x &\n./watch\n",
                       "#SBATCH --requeue\nscontrol requeue $SLURM_JOB_ID\n", "scontrol requeue $SLURM_JOB_ID\n",
                       "a && srun ./x &\nb\nwait\n"});
}

TEST(ScriptRules, AJobThatIsNeverRequeuedRequeuesItself) {
  const std::string again = "scontrol requeue $SLURM_JOB_ID", never = "#SBATCH --no-requeue\n" + job;
  const std::vector<std::string> texts{again,
                                       "trap '" + again + "' USR1",
                                       "trap \"" + again + "\" USR1",
                                       "trap $'" + again + "' EXIT",
                                       "trap -- '" + again + "' USR1 TERM",
                                       "trap 'save; wait; " + again + "; exit 0' USR1",
                                       "trap \"echo again; " + again + "\" USR1",
                                       "trap 'if save; then\n  " + again + "\nfi' TERM",
                                       "trap 'exec " + again + "' USR1",
                                       "trap 'ssh login " + again + "' USR1",
                                       "again() { " + again + "; }; trap again USR1",
                                       "exec bash -c '" + again + "'",
                                       "ssh -n login \"" + again + "\"",
                                       "ssh login " + again,
                                       "eval \"" + again + "\"",
                                       "timeout 10 /usr/bin/scontrol -Q requeue 1",
                                       "save && scontrol requeuehold 1"};
  for (const std::string& text : texts)
    expect_only(never, {{text.c_str(), 1, error, "scontrol requeue in a job with --no-requeue of line 1"}});
  expect_only("#PBS -r n\n", {{"trap 'qrerun $PBS_JOBID' TERM", 1, error, "qrerun in a job with -r of line 1"}});
  expect_nothing(never, {"trap 'scontrol show job 1; requeue' USR1\n", "echo 'scontrol requeue 1'\n", "trap '' USR1\n",
                         "requeue\n", "trap '$(requeue)' USR1\n", "trap - USR1\n"});
  expect_nothing(job, {"trap 'scontrol requeue $SLURM_JOB_ID' USR1\n"});
}

TEST(ScriptRules, NodesThatAreReadOneByOne) {
  const std::string hosts = "scontrol show hostnames", run = "ssh -n $n ./x";
  const std::vector<std::string> texts{
      "while read n; do " + run + "; done < <(" + hosts + " $SLURM_JOB_NODELIST)",
      "while read -r n; do for i in 1 2; do " + run + "; done; done <<< \"$(" + hosts + ")\"",
      "until ! read n; do " + run + "; done < \"$PBS_NODEFILE\"",
      hosts + " | while read -r n; do " + run + " & done; wait",
      hosts + " \"$SLURM_JOB_NODELIST\" |\nwhile read n; do\n  " + run + "\ndone",
      "cat $PBS_NODEFILE | sort -u | while IFS= read -r n; do timeout 5 " + run + "; done",
      "mapfile -t all < <(" + hosts + ")\nfor n in \"${all[@]}\"; do " + run + "; done",
      "readarray all <<< `" + hosts + "`\n/usr/bin/ssh ${all[1]} ./x",
      "read -a all <<< $(" + hosts + ")\nrsh ${all[0]} ./x",
      "for n in $(" + hosts + "); do nohup " + run + " & done; wait",
      hosts + " | xargs -I{} ssh {} ./x"};
  for (const std::string& text : texts)
    EXPECT_NE(listed(lint("#SBATCH -N 2\n" + text + "\n")).find(" to nodes of the job"), std::string::npos) << text;
  expect_nothing("#SBATCH -N 2\n", {"while read n; do ssh $n ./x; done < machines\n",
                                    "while read n; do ssh $GATE ./x; done < <(scontrol show hostnames)\nGATE=a\n",
                                    "cat machines | while read n; do ssh $n ./x; done\nscontrol show hostnames\n",
                                    "while read a; do ./y $a; done < <(scontrol show hostnames)\nssh $n ./x\n",
                                    "scontrol show hostnames | xargs -I{} ./x {}\n"});
}

TEST(ScriptRules, HereDocumentsEndWhereBashEndsThem) {
  expect_only(job, {{"cat <<EOF\na\n EOF\nsrun ./x\n", 1, error, "never ends"},
                    {"cat <<EOF\na\nEOF \nsrun ./x\n", 1, error, "never ends"},
                    {"cat <<EOF\na\n\tEOF\nsrun ./x\n", 1, error, "with nothing before or after"},
                    {"cat <<-EOF\na\n  EOF\nsrun ./x\n", 1, error, "never ends"}});
  expect_nothing(job, {"cat <<-EOF\n\ta\n\tEOF\nsrun ./x\n", "cat <<' EOF'\na\n EOF\nsrun ./x\n", "cat <<E\na\nE",
                       "cat <<-'A' <<B\n\t\tA\nB\nsrun ./x\n"});
}

TEST(ScriptRules, VariablesOfTheOtherBatchSystem) {
  const std::string pbs = "#PBS -l walltime=10\n";
  expect_only(job, {{"cd $PBS_O_WORKDIR\n", 1, warning, "fix: $SLURM_SUBMIT_DIR"},
                    {"cat ${PBS_NODEFILE}\ncat $PBS_NODEFILE\n", 1, warning, "it is a variable of PBS"},
                    {"if [ $SLURM_NTASKS -gt 1 ]; then cat $PBS_NODEFILE; fi\n", 1, warning, "$PBS_NODEFILE"}});
  expect_only(pbs, {{"cd $SLURM_SUBMIT_DIR\nmpiexec ./x\n", 1, warning, "fix: $PBS_O_WORKDIR"},
                    {"mpiexec -n $SLURM_NTASKS ./x\n", 1, warning, "it is a variable of Slurm"}});
  for (const std::string& header : {job, pbs})
    expect_nothing(header,
                   {"cd ${PBS_O_WORKDIR:-$SLURM_SUBMIT_DIR}\n", "cd \"${SLURM_SUBMIT_DIR:-${PBS_O_WORKDIR:-.}}\"\n",
                    "if [ -n \"$PBS_JOBID\" ]; then cd $PBS_O_WORKDIR; else cd $SLURM_SUBMIT_DIR; fi\n",
                    "if [ -n \"$SLURM_JOB_ID\" ]; then cd $SLURM_SUBMIT_DIR; else cd $PBS_O_WORKDIR; fi\n",
                    "if [ ! -z \"$SLURM_JOB_ID\" ]; then cd $SLURM_SUBMIT_DIR; else cd $PBS_O_WORKDIR; fi\n",
                    "if [[ -v PBS_JOBID ]]; then\n  cd $PBS_O_WORKDIR\nelse\n  cd $SLURM_SUBMIT_DIR\nfi\n",
                    "case $SYSTEM in\npbs) cd $PBS_O_WORKDIR ;;\nslurm) cd $SLURM_SUBMIT_DIR ;;\nesac\nSYSTEM=pbs\n",
                    "PBS_O_WORKDIR=a\nSLURM_SUBMIT_DIR=b\ncd $PBS_O_WORKDIR $SLURM_SUBMIT_DIR\n"});
  expect_nothing("", {"cd $PBS_O_WORKDIR\ncd $SLURM_SUBMIT_DIR\n"});
}

TEST(ScriptRules, CharactersThatLookLikeOthers) {
  expect_only(job, {{"#SBATCH --nodes=2\u00a0--exclusive\n", 1, error, "U+00A0 (a no-break space)"},
                    {"#SBATCH --job-name=\u201ca\u201d\n", 1, error, "U+201C (a curly quote)"},
                    {"srun\u00a0-n 4 ./x\n", 1, error, "U+00A0 (a no-break space)"},
                    {"srun \u2014n 4 ./x\n", 1, error, "U+2014 (a typographic dash)"},
                    {"echo \u2018a\n", 1, warning, "U+2018 (a curly quote)"},
                    {"ec\u200bho a\n", 1, error, "U+200B"},
                    {"#SBATCH --nodes=2\u200e\n", 1, error, "U+200E (a direction mark)"},
                    {"#SBATCH --nodes=\u2068two\u2069\n", 1, error, "U+2068 (a direction mark)"},
                    {"#SBATCH --nodes=2\u2028\n", 1, error, "U+2028 (a line separator)"},
                    {"#SBATCH --nodes\uff1d2\n", 1, error, "type ="},
                    {"srun \uff0dn 4 ./x\n", 1, error, "U+FF0D (a fullwidth hyphen)"},
                    {"srun .\u2215x\n", 1, error, "type /"}});
  expect_nothing(job, {"# \u201cSBATCH\u201d\u00a0\n", "echo \"\u201ca\u201d \u2013 \u00a0\"\n", "echo 'it\u2019s'\n",
                       "#SBATCH --comment=K\u00f6ln\n", "cat <<E\n\u201ca\u201d\nE\n"});
  EXPECT_EQ(lint("#PBS -\u200bN a\n")[0].what, "U+200B (a zero-width character)");
  EXPECT_EQ(lint("#SBATCH x\u00e4\n")[0].what, "'x\u00e4' belongs to no option");
}

TEST(ScriptRules, AByteOrderMarkIsNamedAndTheRestRead) {
  const auto judge = [](const std::string& text) { return lint_script(read_job_script(text), any, {}); };
  const auto findings = judge("\ufeff#!/bin/bash\n#SBATCH --nodse=2\n");
  ASSERT_EQ(findings.size(), 2U) << listed(findings);
  EXPECT_TRUE(has(findings, 1, error, "a byte order mark (U+FEFF)"));
  EXPECT_TRUE(has(findings, 2, error, "did you mean --nodes?"));
  EXPECT_TRUE(has(judge("\ufeff#SBATCH -n 2\n"), 1, error, "U+FEFF"));
}

// Nothing of it may take more than in proportion to its size, however it is nested and repeated.
TEST(ScriptRules, OfTextsWithoutEndSoMuchIsReadOnly) {
  const auto repeated = [](std::string_view text, int n) {
    std::string all = "#!/bin/bash\n";
    for (int i = 0; i < n; ++i) all += text;
    return all;
  };
  const std::string of_launchers = repeated("a=srun\n", 64) + repeated("$a b\n", 10'000).substr(12);
  for (const std::string& text : {of_launchers, repeated("x y z\n", 20'000), repeated("#SBATCH --nodse=2\n", 2000),
                                  repeated("[ $a -eq 1 ]\n", 12'000), repeated("A=$(cat <<E\n\"$b\"\nE\n)\n", 30'000),
                                  repeated("$(\"$(`", 100'000), repeated("a=(\"$b\" ", 60'000)}) {
    const JobScript script = read_job_script(text);
    std::size_t n_words = 0;
    for (const Launch& launch : script.launches) n_words += launch.program.size();
    EXPECT_LE(script.unread.n_words, 50'001U);
    EXPECT_LE(n_words, 200'000U);
    EXPECT_LE(script.directives.size(), 1000U);
    EXPECT_TRUE(script.unread.full_line > 1 || script.unread.open_line > 1) << text.substr(0, 60);
    EXPECT_LE(lint_script(script, any, {}).size(), 501U);
  }
  EXPECT_EQ(read_job_script(repeated("x y z\n", 15'000)).unread.full_line, 0);
  EXPECT_EQ(lint(repeated("#SBATCH -n 1 x\n", 900)).back().what, "more than 500 findings: the others are left out");
}

}  // namespace
}  // namespace lockstep::site
