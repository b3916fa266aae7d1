#include "site/script_lint.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "unit/site/example_sites.hpp"
#include "unit/site/findings.hpp"

namespace lockstep::site {
namespace {

const std::string clean_header = "#SBATCH --account=x-gpu\n#SBATCH --mem=0\n#SBATCH --partition=big\n";

TEST(ScriptLint, DirectivesThatAreNone) {
  expect_all({{"#SBATCH --memory=100G\n", 1, error, "did you mean --mem?"},
              {"#SBATCH --nodse=2\n", 1, error, "did you mean --nodes?"},
              {"#SBATCH -mail-type=END\n", 1, error, "--mail-type"},
              {"#SBATCH -nodes=2\n", 1, error, "--nodes"},
              {"#SBATCH --signal=USR@300\n", 1, error, "B:USR1@300"},
              {"#SBATCH --array=1-100%\n", 1, error, "0-15%4"},
              {"#SBATCH --walltime=1\n", 1, error, "did you mean --time?"},
              {"#SBATCH --gpu=2\n", 1, error, "did you mean --gpus?"},  // the beginning of three options
              {"#SBATCH --cpu-bind=cores\n", 1, error, "srun"},
              {"#SBATCH \xe2\x80\x93nodes=2\n", 1, error, "a typographic dash"},
              {"#SBATCH --nodes=2 what\n", 1, error, "belongs to no option"},
              {"#SABTCH --nodes=2\n", 1, warning, "#SBATCH at the beginning"},
              {"# SBATCH --nodes=2\n", 1, note, "comment to the batch system"},
              {"#SBATCH -N 1\na\n#SBATCH -n 2\n", 3, error, "after the first command"},
              {"#SBATCH -N 1\n#PBS -q main\n", 2, warning, "another batch system"},
              {"#PBS -l select=1 # one\n", 1, error, "'# one' is no comment to qsub"}},
             {.name = "generic", .title = "any"});
}

TEST(ScriptLint, ValuesThatCannotBe) {
  expect_all({{"#SBATCH --time==10\n", 1, error, "one = between"},
              {"#SBATCH --time=1h\n", 1, error, "HH:MM:SS"},
              {"#SBATCH --nodes=two\n", 1, error, "whole number"},
              {"#SBATCH --cpus-per-task=0\n", 1, error, "whole number"},
              {"#SBATCH --mem=lots\n", 1, error, "208G"},
              {"#SBATCH --nodes=$N\n", 1, error, "not filled in"},
              {"#SBATCH --gres=gpu:geforece:2\n", 1, error, "geforce"},
              {"#SBATCH --gres=gpu:a100:x:2\n", 1, error, "gpu:TYPE:N"},
              {"#SBATCH --gres=gpus:2\n", 1, error, "gpu:N"},
              {"#PBS -l gpu_type=a100\n", 1, error, "resource of a chunk"},
              {"#PBS -l walltime=12h\n", 1, error, "HH:MM:SS"},
              {"#PBS -l select=2:npcus=4\n", 1, warning, "did you mean ncpus?"},
              {"#PBS -n 2\n", 1, error, "-N, the name of the job"},
              {"#PBS -N 2\n", 1, warning, "names the job"}},
             {.name = "generic", .title = "any"});
}

TEST(ScriptLint, PlaceholdersAreNamedByLine) {
  expect_all({{"#SBATCH --account=<code>-delta-gpu\n", 1, error, "edit line 1"},
              {"#SBATCH --account=your-account-name\n", 1, error, "edit line 1"},
              {"#SBATCH --partition=cluster_partition_name\n", 1, error, "edit line 1"},
              {"#SBATCH --mail-user=your_email@bu.edu\n", 1, warning, "edit line 1"},
              {"#SBATCH --account=CHANGE_ME-gpu\n", 1, error, "edit line 1"},
              {"#SBATCH --account=CHANGE_ME\n", 1, note, "edit this line"},
              {"#PBS -A <project>\n", 1, error, "edit line 1"},
              {"data=CHANGE_ME\n", 1, note, "edit this line"}},
             {.name = "generic", .title = "any"});
}

TEST(ScriptLint, WhatASiteNeeds) {
  const auto findings = lint("#SBATCH --nodes=1\n", slurm_site());
  EXPECT_TRUE(has(findings, 1, error, "--account=... is missing"));
  EXPECT_TRUE(has(findings, 1, warning, "--mem=... is missing"));
  EXPECT_FALSE(has(lint("#SBATCH --mem-per-cpu=1G\n", slurm_site()), 1, warning, "--mem=... is missing"));
  EXPECT_TRUE(has(lint("#PBS -N a\n", pbs_site()), 1, error, "walltime=... is missing"));
  EXPECT_TRUE(has(lint("#PBS -N a\n", slurm_site()), 1, error, "its batch system is Slurm"));
}

TEST(ScriptLint, LimitsOfASite) {
  expect_all({{"#SBATCH --nodes=6\n", 1, error, "at most 5"},
              {"#SBATCH --time=61\n", 1, error, "at most 1 hour"},
              {"#SBATCH --ntasks-per-node=4\n#SBATCH --cpus-per-task=17\n", 2, error, "68 cores"},
              {"#SBATCH --mem=257G\n", 1, error, "memory"},
              {"#SBATCH --gpus-per-node=5\n", 1, error, "at most 4"},
              {"#SBATCH --gres=gpu:h200:4\n", 1, error, "a100"},
              {"#SBATCH --gres=gpu:geforce:4\n", 1, error, "no longer has GPUs"},
              {"#SBATCH --ntasks-per-node=2\n#SBATCH --gpus-per-node=4\n", 1, note, "2 ranks and 4 GPUs"},
              {"#SBATCH --partition=bgi\n", 1, error, "did you mean big?"},
              {"#SBATCH --partition=ghx4\n", 1, error, "another cluster"},
              {"#SBATCH --partition=unheard_of\n", 1, note, "documents"},
              {"#SBATCH --nodes=2\n#SBATCH --partition=small\n", 1, error, "at most 1"},
              {"#SBATCH --nodes=7\n#SBATCH --gpus-per-node=4\n", 2, error, "a user of Here may have 24"},
              {"#SBATCH --gpus-per-node=1\n", 1, warning, "GPUs of no model"},
              {"#SBATCH --gpus-per-node=1\n#SBATCH --constraint=v100\n", 2, warning, "alone"},
              {"#SBATCH --constraint=\"v100&ai\"\n#SBATCH --cpus-per-task=47\n", 2, error, "has 46"},
              {"#SBATCH --cpus-per-task=4\nexport OMP_NUM_THREADS=8\n", 2, warning, "4 cores a rank"},
              {"#SBATCH --account=x-cpu\n#SBATCH --gpus-per-node=1\n", 1, warning, "-gpu"},
              {"#SBATCH --array=1,7-3001:2%4\n", 1, error, "at most 3000"},
              {"#SBATCH --qos=x-b\n#SBATCH --gpus-per-node=1\n", 1, error, "a QOS that ends in -b has none"},
              {"cp a \"${OLD_TMPDIR}/a\"\n", 1, warning, "fix: $TMPDIR"}},
             slurm_site(), clean_header);
  EXPECT_FALSE(has(lint(clean_header + "#SBATCH --time=61\n", slurm_site()), 4, error, "1 hours"));
  for (const char* const text : {"#SBATCH --array=0-3000%1\n", "#SBATCH --qos=x-b\n", "cp a \"$TMPDIR/a\"\n",
                                 "#SBATCH --qos=x\n#SBATCH --gpus-per-node=a100:1\n"})
    EXPECT_EQ(listed(lint(clean_header + text, slurm_site())), "") << text;
}

TEST(ScriptLint, LimitsOfChunks) {
  const std::string header = "#PBS -q main\n#PBS -l walltime=01:00:00\n";
  expect_all({{"#PBS -l select=83:ncpus=64:ngpus=4\n", 1, error, "at most 82"},
              {"#PBS -l select=1:ncpus=65:ngpus=4\n", 1, error, "has 64"},
              {"#PBS -l select=1:ncpus=129\n", 1, error, "has 128"},
              {"#PBS -l select=1:ngpus=5\n", 1, error, "at most 4"},
              {"#PBS -l select=1:ngpus=4:mem=488gb\n", 1, error, "memory"},
              {"#PBS -l select=1:mem=257gb\n", 1, error, "it has 256"},
              {"#PBS -l walltime=13:00:00\n", 1, error, "at most 12 hours"},
              {"#PBS -q mian\n", 1, error, "did you mean main?"}},
             pbs_site(), header);
  EXPECT_EQ(listed(lint(header + "#PBS -l select=100:ncpus=128:mpiprocs=8\n", pbs_site())), "");
}

TEST(ScriptLint, LaunchesThatGoWrong) {
  expect_all({{"srun --mpi=pmix ./reduce_all\n", 1, error, "--expect-ranks"},
              {"run=\"srun --mpi=pmix\"\n$run lockstep train toy\n", 2, error, "--expect-ranks"},
              {"launch reduce_all\n", 1, error, "--expect-ranks"},
              {"#SBATCH --cpus-per-task=4\nsrun --mpi=pmix ./x\n", 2, warning, "22.05"},
              {"mpirun ./x\n", 1, error, "mpirun on Here"},
              {"srun ./x\n", 1, warning, "srun without --mpi"},
              {"srun --mpi=pmi2 ./x\n", 1, warning, "--mpi=pmi2"},
              {"export SLURM_MPI_TYPE=none\nsrun ./x\n", 2, warning, "--mpi=none"},
              {"srun python -m torch.distributed.launch x.py\n", 1, warning, "deprecated"},
              {"torchrun --master_port=29500 x.py\n", 1, warning, "port 29500"},
              {"torchrun --rdzv_endpoint=$ip:29500 x.py\n", 1, warning, "port 29500"},
              {"#SBATCH --ntasks-per-node=4\nsrun torchrun --nproc_per_node=4 x.py\n", 2, warning, "4 times a node"},
              {"#SBATCH --ntasks-per-node=4\nsrun accelerate launch --num_processes=4 x.py\n", 2, warning,
               "srun starts accelerate 4 times a node"},
              {"srun accelerate launch --main_process_port 29500 x.py\n", 1, warning, "port 29500"},
              {"srun --mpi=pmix --gpu-bind=single:1 reduce_all --expect-ranks 4\n", 1, warning, "hides"},
              {"#SBATCH --gpus-per-task=1\nsrun --mpi=pmix reduce_all --expect-ranks 4\n", 1, warning, "hides"},
              {"srun --mpi=pmix reduce_all --expect-ranks 4 --device cuda\n", 1, warning, "asks for no GPUs"},
              {"#SBATCH --nodes=1\nexport NCCL_NET=\"AWS Libfabric\"\n", 2, note, "one node"}},
             slurm_site(), clean_header);
  EXPECT_TRUE(has(lint("#SBATCH -N 1\nsrun lockstep train t --expect-ranks 4\n"), 1, warning, "--requeue"));
  for (const char* const request : {"--gpus-per-node=4", "--gpus=4", "--gres=gpu:a100:4", "--gpus-per-task=$n"})
    EXPECT_FALSE(has(lint(std::string{"#SBATCH "} + request + "\nsrun reduce_all --expect-ranks 4 --device cuda\n"), 2,
                     warning, "asks for no GPUs"));
  const std::string on_pbs = "#PBS -l select=1:ncpus=8\nmpiexec reduce_all --expect-ranks 1 --device cuda\n";
  EXPECT_TRUE(has(lint(on_pbs, pbs_site()), 2, warning, "asks for no GPUs"));
  EXPECT_FALSE(
      has(lint("#PBS -l select=1:ncpus=8:ngpus=1\nmpiexec reduce_all --expect-ranks 1 --device cuda\n", pbs_site()), 2,
          warning, "asks for no GPUs"));
  EXPECT_TRUE(has(lint("#PBS -q main\nsrun x\n", pbs_site()), 2, error, "srun on There"));
  EXPECT_TRUE(has(lint("#PBS -r n\nmpiexec lockstep train t --expect-ranks 2\n", pbs_site()), 1, warning, "-r y"));
}

TEST(ScriptLint, RanksAreThoseOfTheJob) {
  const std::string job = clean_header + "#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n";
  expect_all({{"srun --mpi=pmix -n 100 ./x\n", 1, error, "100 ranks in all, and the job asks for 8"},
              {"srun --mpi=pmix --ntasks-per-node=5 ./x\n", 1, error, "5 ranks a node, and the job asks for 4"},
              {"#SBATCH --exclusive\nsrun --mpi=pmix -n 100 ./x\n", 2, warning, "share the cores"},
              {"#SBATCH -c 2\nsrun --mpi=pmix -c 1 -n 16 ./x\n", 2, warning, "16 ranks in all"},
              {"srun --mpi=pmix reduce_all --expect-ranks 64\n", 1, error, "64 in a launch of 8"},
              {"srun --mpi=pmix -n 4 reduce_all --expect-ranks=8\n", 1, error, "8 in a launch of 4"},
              {"launch reduce_all --expect-ranks 4\n", 1, error, "4 in a launch of 8"}},
             slurm_site(), job);
  for (const char* const text :
       {"srun --mpi=pmix -n 8 reduce_all --expect-ranks 8\n", "srun --mpi=pmix -N 1 reduce_all --expect-ranks 4\n",
        "use_nodes 1\nlaunch reduce_all --expect-ranks 4\n", "srun --mpi=pmix -n $N reduce_all --expect-ranks 3\n",
        "srun --mpi=pmix -O -n 100 ./x\n", "srun -n 100 hostname\n"})
    EXPECT_EQ(listed(lint(job + "N=4\n" + text, slurm_site())), "") << text;
  const std::string range = clean_header + "#SBATCH --nodes=1-2\n#SBATCH --ntasks-per-node=4\n";
  EXPECT_EQ(listed(lint(range + "srun --mpi=pmix -n 100 ./x\n", slurm_site())), "");
  const std::string chunks = "#PBS -q main\n#PBS -l walltime=10\n#PBS -l select=2:ncpus=64:mpiprocs=4:ngpus=4\n";
  expect_all({{"mpiexec -n 16 ./x\n", 1, warning, "16 ranks in all, and the job asks for 8"},
              {"mpiexec -ppn 8 ./x\n", 1, warning, "8 ranks a node, and the job asks for 4"},
              {"mpiexec -ppn 65 ./x\n", 1, error, "64 cores"},
              {"mpiexec -n 8 -ppn 4 reduce_all --expect-ranks 16\n", 1, error, "16 in a launch of 8"}},
             pbs_site(), chunks);
  EXPECT_EQ(listed(lint(chunks + "mpiexec -n 4 -ppn 2 reduce_all --expect-ranks=4\n", pbs_site())), "");
}

TEST(ScriptLint, OurProgramsAsTheyAreCalled) {
  const std::string job = "#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n";
  const Site site{.name = "generic", .title = "any"};
  expect_all({{"lockstep trian toy\n", 1, error, "did you mean train?"},
              {"srun -n 8 env A=1 bin/lockstep trian --expect-ranks 8\n", 1, error, "no command 'trian'"},
              {"lockstep measure\n", 1, error, "one of train, "},
              {"reduce_all -b 8\n", 1, error, "reduce_all without a launcher in a job of 8 ranks"},
              {"OMP_NUM_THREADS=2 lockstep train toy\n", 1, error, "lockstep train without a launcher"},
              {"srun -n 8 reduce_all --expect-ranks 8 --nproc 4\n", 1, error, "--nproc 4 in a launch by srun"},
              {"srun -n 8 reduce_all --expect-ranks 8 --nproc=8\n", 1, warning, "--nproc 8 in a launch by srun"}},
             site, job);
  for (const char* const text : {"lockstep doctor\n", "lockstep shard bench d\n", "lockstep --version\n",
                                 "lockstep $verb\n", "reduce_all --nproc 4\n", "reduce_all --list\n",
                                 "reduce_all --baseline a --now b\n", "command -v lockstep\n", "echo lockstep trian\n"})
    EXPECT_EQ(listed(lint(job + text, site)), "") << text;
  EXPECT_EQ(listed(lint("#SBATCH --nodes=1\n#SBATCH --ntasks=1\nreduce_all -b 8\n", site)), "");
}

TEST(ScriptLint, VariablesThatAreReadAndNothingSets) {
  expect_all({{"x=$SLURM_CPUS_PER_TAKS\n", 1, warning, "SLURM_CPUS_PER_TASK"},
              {"echo ${SLURM_NTAKS}\n", 1, warning, "SLURM_NTASKS"},
              {"cd $PBS_O_WORKDR\n", 1, warning, "PBS_O_WORKDIR"},
              {"export LOCKSTEP_MPIEXE=x\n", 1, warning, "LOCKSTEP_MPIEXEC"},
              {"export MASTER_ADR=x\n", 1, error, "MASTER_ADDR"}},
             {.name = "generic", .title = "any"});
  for (const char* const text : {"echo $SLURM_NTASKS $SLURM_JOB_ID\n", "#SBATCH --signal=B:SIGUSR1@300\ntrap a USR1\n",
                                 "#SBATCH --signal=10\na\n", "#SBATCH --array=0-15:4,20%2\na\n", "#SBATCH -N 2\na\n",
                                 "SLURM_NTAKS=1\necho $SLURM_NTAKS\n"})
    EXPECT_EQ(listed(lint(text)).find("error"), std::string::npos) << text;
  EXPECT_EQ(listed(lint("echo $SLURM_NTASKS $SLURM_JOB_ID\n")), "");
}

TEST(ScriptLint, WhatSbatchRefusesUnread) {
  const Site site{.name = "generic", .title = "any"};
  const auto judge = [&](const std::string& text) { return lint_script(read_job_script(text), site, {}); };
  EXPECT_TRUE(has(judge("#SBATCH -N 1\na\n"), 1, error, "#!"));
  EXPECT_TRUE(has(judge("#!/bin/bash\r\n#SBATCH -N 1\r\na\r\n"), 1, error, "Windows"));
  for (const char* const end : {"", "\n"})
    EXPECT_TRUE(has(judge(std::string{"#!/bin/bash\r#SBATCH -N 1\ra\r"} + end), 1, error, "old Mac (CR)"));
  EXPECT_FALSE(has(judge("#!/bin/bash\n#SBATCH -N 1\nprintf 'a\rb'\n"), 3, error, "Mac"));
  EXPECT_TRUE(has(judge("#!/bin/bash\n#PBS -N a\na\r\n"), 3, error, "CR"));
  for (const char* const empty : {"", "\n", " \n\t\n"}) EXPECT_TRUE(has(judge(empty), 1, error, "empty")) << empty;
  EXPECT_TRUE(has(judge("srun -n 4 hostname\n"), 1, warning, "#!/bin/bash"));
  EXPECT_TRUE(has(judge("a\n"), 1, note, "does not begin with #!"));
  EXPECT_TRUE(has(judge("run() {\n  srun ./x\n}\n"), 1, note, "does not begin with #!"));
  for (const char* const text : {"#!/bin/bash\n#SBATCH -N 1\na\n", "#PBS -N a\na\n", "#!/bin/bash\n"})
    EXPECT_EQ(listed(judge(text)), "") << text;
}

TEST(ScriptLint, ALauncherInAVariableIsJudgedWhereItIsSet) {
  const auto findings = lint(clean_header + "run=\"srun\"\n$run ./a\n$run ./b\n", slurm_site());
  EXPECT_TRUE(has(findings, 4, warning, "srun without --mpi"));
  EXPECT_EQ(findings.size(), 1U) << listed(findings);
}

TEST(ScriptLint, WhereAProgramIsIsNoLaunch) {
  const std::string job = "#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n";
  for (const char* const text : {"command -v reduce_all\n", "if ! command -v reduce_all >/dev/null; then exit 1; fi\n",
                                 "bin=$(command -v reduce_all)\n", "time command -V reduce_all\n", "command -pv srun\n",
                                 "srun reduce_all -h\n", "srun which reduce_all\n", "srun ls -l reduce_all\n",
                                 "srun ldd bin/lockstep\n", "srun -n2 cp reduce_all /tmp\n"})
    EXPECT_EQ(listed(lint(job + text)), "") << text;
  EXPECT_TRUE(has(lint("command srun reduce_all\n"), 1, error, "--expect-ranks"));
}

TEST(ScriptLint, ArgumentsThatVariablesHold) {
  for (const char* const text :
       {"args=(--expect-ranks \"$SLURM_NTASKS\" -b 8)\nsrun reduce_all \"${args[@]}\"\n",
        "flags=\"--expect-ranks 8\"\nsrun reduce_all $flags\n",
        "ranks=\"--expect-ranks 8\"\nflags=\"$ranks -b 8\"\nsrun reduce_all ${flags}\n", "srun reduce_all \"$@\"\n",
        "args=(-b 8)\nargs+=(--expect-ranks 8)\nsrun reduce_all \"${args[@]}\"\n", "srun reduce_all ${1:+-b 8}\n",
        "srun reduce_all $(cat flags)\n", "run=srun\nflags=\"--expect-ranks 8\"\n$run reduce_all $flags\n"})
    EXPECT_EQ(listed(lint(text)), "") << text;
  expect_all({{"n=8\nflags=\"-e 1G\"\nsrun reduce_all -b $n $flags\n", 3, error, "without --expect-ranks"},
              {"srun reduce_all --json \"$HOME/a.json\"\n", 1, error, "without --expect-ranks"},
              {"flags=\"-n 8\"\nsrun $flags reduce_all --expect-ranks 4\n", 2, error, "4 in a launch of 8"},
              {"exe=$HOME/bin/reduce_all\nsrun \"$exe\" -b 8\n", 2, error, "without --expect-ranks"}},
             {.name = "generic", .title = "any"});
  EXPECT_EQ(listed(lint(clean_header + "#SBATCH -c 4\nsrun $1 ./x\n", slurm_site())), "");
}

TEST(ScriptLint, ProgramsBehindOthers) {
  const std::string job = "#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n";
  expect_all({{"exe=bin/reduce_all\n\"$exe\" -b 8\n", 2, error, "reduce_all without a launcher"},
              {"numactl -N 0 -l reduce_all -b 8\n", 1, error, "reduce_all without a launcher"},
              {"taskset -c 0-3 reduce_all -b 8\n", 1, error, "reduce_all without a launcher"},
              {"stdbuf -o L reduce_all -b 8\n", 1, error, "reduce_all without a launcher"},
              {"timeout -s USR1 10m reduce_all -b 8\n", 1, error, "reduce_all without a launcher"},
              {"function f { reduce_all -b 8; }\n", 1, error, "reduce_all without a launcher"},
              {"numactl --membind 0 srun reduce_all\n", 1, error, "without --expect-ranks"},
              {"srun numactl -l reduce_all\n", 1, error, "without --expect-ranks"},
              {"srun nsys profile -o a reduce_all\n", 1, error, "without --expect-ranks"},
              {"srun ./bind.sh reduce_all -b 8\n", 1, error, "without --expect-ranks"}},
             {.name = "generic", .title = "any"}, job);
  EXPECT_EQ(listed(lint(job + "reduce_all $flags\n")), "");
}

TEST(ScriptLint, LaunchesThatAreRight) {
  for (const char* const text :
       {"srun --mpi=pmix ./reduce_all --expect-ranks=4\n", "#SBATCH --cpus-per-task=4\nsrun --mpi=pmix -c 4 ./x\n",
        "#SBATCH --cpus-per-task=4\nexport SRUN_CPUS_PER_TASK=4\nsrun --mpi=pmix ./x\n", "srun --mpi=list\n",
        "#SBATCH --cpus-per-task=4\nsrun -n 1 hostname\n", "srun python x.py\n", "reduce_all --nproc 4\n",
        "#SBATCH --requeue\nsrun --mpi=pmix lockstep train toy --expect-ranks 4\n",
        "#SBATCH --nodes=1\nlaunch lockstep train toy --expect-ranks 4\nend_job\n",
        "torchrun --master_port=$port x.py\n", "#SBATCH --ntasks-per-node=1\nsrun torchrun --nproc_per_node=4 x.py\n",
        "#SBATCH --gpus-per-node=nvidia_A100:4 --constraint=x\n",
        "#SBATCH -n 1\n#SBATCH hetjob\n#SBATCH --nodes=1000\n",
        "#SBATCH --gpu-bind=none\nsrun --mpi=pmix reduce_all --expect-ranks 4\n"})
    EXPECT_EQ(listed(lint(clean_header + text, slurm_site())), "") << text;
  EXPECT_EQ(listed(lint("#PBS -l walltime=10\nmodule load openmpi\nmpirun ./x\n", pbs_site())), "");
}

TEST(ScriptLint, SlipsOfTheShell) {
  expect_all({{"nodes=( $(scontrol show hostnames $L) )\nnodes_array=($nodes)\n", 2, error, "keeps one element"},
              {"ip=$(srun hostname -I | cut -d \" \" -f 2)\n", 1, warning, "guess"},
              {"ip=$(srun hostname --ip-address)\n", 1, note, "several addresses"},
              {"if [ \"$ENABLE_NCCL_OFI\" = 1 ]; then a; fi\nENABLE_NCCL_OFI=1\n", 1, warning, "before line 2 sets it"},
              {"NCCL_DEBUG=INFO\nx\n", 1, warning, "not exported"},
              {"let n=1<<2\nexport NCCL_DISABLE_IB=1\n", 1, error, "never ends"},
              {"x &\nkill $GPU_LOG_PID\n", 2, error, "GPU_LOG_PID=$!"},
              {"cd $SCRIPT_DIR\n", 1, note, "nothing in this script sets $SCRIPT_DIR"},
              {"CPUS_PER_TASK=$((SLURM_CPUS_PER_TASK / SLURM_NNODES))\n", 1, warning, "divided by the nodes"},
              {"x $(( ${SLURM_CPUS_PER_TASK}/$SLURM_JOB_NUM_NODES ))\n", 1, warning, "divided by the nodes"},
              {"export MASTER_ADDRESS=a\n", 1, error, "MASTER_ADDR"},
              {"export NCCL_DISABLE_IB=1\n", 1, error, "NCCL_IB_DISABLE"},
              {"export NCCL_NET_GDR_LEVEL=PBH\n", 1, error, "PHB"},
              {"export MASTER_PORT=12355\n", 1, warning, "port 12355 is fixed"},
              {"srun \xe2\x80\x93"
               "c 4 x\n",
               1, error, "a typographic dash"},
              {"set -euo pipefail\nmodule load a\n", 1, warning, "set -u before module"}},
             slurm_site());
}

TEST(ScriptLint, WhatLooksLikeASlipAndIsNone) {
  for (const char* const text : {"nodes=$(scontrol show hostnames $SLURM_NODELIST)\nnodes_array=($nodes)\n",
                                 "a=(b c)\nd=(\"${a[@]}\")\n",
                                 "ip=$(hostname)\n",
                                 "if [ -z \"$A\" ]; then A=1; fi\n",
                                 "if [ \"${A:-}\" = 1 ]; then b; fi\nA=1\n",
                                 "if [ \"$a\" = 1 ]; then b; fi\n",
                                 "while [ \"$A\" != 1 ]; do A=1; done\n",
                                 "NCCL_DEBUG=INFO x\n",
                                 "NCCL_DEBUG=INFO\nexport NCCL_DEBUG\n",
                                 "export MASTER_PORT=$((10000 + SLURM_JOB_ID % 50000))\n",
                                 "set -eo pipefail\nmodule load a\n",
                                 "set -u\nset +u\nmodule load a\n",
                                 "cat <<EOF\nsrun x\nEOF\n",
                                 "MASTER_ADDR=$(hostname)\ntorchrun --master_addr $MASTER_ADDR $x\n",
                                 "x & P=$!\nkill $P\n",
                                 "kill ${P:-}\n",
                                 "read P\nx $P\n",
                                 ". ./lib.sh\nx $P\n",
                                 "x $SLURM_JOB_ID $TMPDIR\n",
                                 "x $((SLURM_CPUS_PER_TASK / 2)) $SLURM_NNODES\n",
                                 "f() {\n  if [ $A = 1 ]; then b; fi\n}\nA=1\nf\n",
                                 "for a in 1 2; do if [ $a = 1 ]; then b; fi; done\na=3\n"})
    EXPECT_EQ(listed(lint(text, slurm_site())), "") << text;
}

TEST(ScriptLint, FilesBesideTheScript) {
  const auto exists = [](const std::string& file) { return file == "there.py"; };
  const Site site{.name = "generic", .title = "any"};
  EXPECT_TRUE(has(lint("python not_there.py\n", site, exists), 1, note, "not_there.py"));
  EXPECT_TRUE(has(lint("srun python3 -u not_there.py 1\n", site, exists), 1, note, "not_there.py"));
  EXPECT_TRUE(has(lint("torchrun --nnodes=1 not_there.py\n", site, exists), 1, note, "not_there.py"));
  for (const char* const text : {"python there.py\n", "python $x.py\n", "/a/b.sh\n", "cd x\n./a\n", "python -m a\n"})
    EXPECT_EQ(listed(lint(text, site, exists)), "") << text;
}

TEST(ScriptLint, AWordOfManyExpansionsTakesNoLongTime) {
  std::string text;
  for (int i = 0; i < 300'000; ++i) text += "${";
  EXPECT_LE(lint(text).size(), 1U);
}

TEST(ScriptLint, FindingsComeByLineAndOnce) {
  const auto findings = lint("#SBATCH --nodes=x\nexport MASTER_ADDRESS=a\nexport NCCL_DEBUG=x\nsrun ./reduce_all\n");
  EXPECT_TRUE(std::ranges::is_sorted(findings, {}, &Finding::line));
  EXPECT_EQ(findings.size(), 4U) << listed(findings);
}

}  // namespace
}  // namespace lockstep::site
