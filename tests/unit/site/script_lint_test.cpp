#include "site/script_lint.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace lockstep::site {
namespace {

/// Each of its limits is another number, so that none can be taken for another.
Site slurm_site() {
  return {.name = "here",
          .title = "Here",
          .system = "slurm",
          .launcher = "srun",
          .mpi_family = "open-mpi",
          .mpi_flag = "pmix",
          .needs = {"account"},
          .wants = {"mem"},
          .most_gpus = 24,
          .gone_gpus = {"geforce"},
          .needs_company = {"v100"},
          .not_here = {"ghx4"},
          .account_ends = "-gpu",
          .has_lmod = true,
          .partitions = {{"big", {.most = 5, .minutes = 60, .cores = 64, .memory_gb = 256, .gpus = 4, .gpu = "a100"}},
                         {"small", {.most = 1}}},
          .kinds = {{{"v100", "ai"}, {.cores = 46, .gpus = 8, .gpu = "v100"}}}};
}

Site pbs_site() {
  return {.name = "there",
          .title = "There",
          .system = "pbs",
          .launcher = "mpiexec",
          .needs = {"walltime"},
          .partitions = {{"main",
                          {.most = 82,
                           .minutes = 720,
                           .cores = 64,
                           .cpu_most = 2488,
                           .cpu_cores = 128,
                           .memory_gb = 487,
                           .gpus = 4,
                           .gpu = "a100"}}}};
}

const std::string clean_header = "#SBATCH --account=x-gpu\n#SBATCH --mem=0\n#SBATCH --partition=big\n";

std::vector<Finding> lint(const std::string& text, const Site& site = {.name = "generic", .title = "any"},
                          const FileExists& exists = {}) {
  return lint_script(read_job_script(text), site, exists);
}

std::string listed(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& one : findings)
    text += std::to_string(one.line) + " " + std::string{name(one.severity)} + " " + one.what + "\n";
  return text;
}

/// Whether one of `findings` is of this line and severity, and says `part`.
bool has(const std::vector<Finding>& findings, int line, Severity severity, std::string_view part) {
  return std::ranges::any_of(findings, [&](const Finding& one) {
    const bool says_it = (one.what + " " + one.why + " " + one.fix).find(part) != std::string::npos;
    return one.line == line && one.severity == severity && says_it;
  });
}

struct Case {
  const char* text;
  int line;
  Severity severity;
  const char* part;
};

void expect_all(const std::vector<Case>& cases, const Site& site, const std::string& header = "") {
  const int n_before = static_cast<int>(std::ranges::count(header, '\n'));
  for (const Case& one : cases) {
    const auto findings = lint(header + one.text, site);
    EXPECT_TRUE(has(findings, one.line + n_before, one.severity, one.part)) << one.text << listed(findings);
  }
}

constexpr Severity error = Severity::error;
constexpr Severity warning = Severity::warning;
constexpr Severity note = Severity::note;

TEST(ScriptLint, DirectivesThatAreNone) {
  expect_all({{"#SBATCH --memory=100G\n", 1, error, "did you mean --mem?"},
              {"#SBATCH --nodse=2\n", 1, error, "did you mean --nodes?"},
              {"#SBATCH --walltime=1\n", 1, error, "did you mean --time?"},
              {"#SBATCH --gpu=2\n", 1, error, "did you mean --gpus?"},  // the beginning of three options
              {"#SBATCH --cpu-bind=cores\n", 1, error, "srun"},
              {"#SBATCH \xe2\x80\x93nodes=2\n", 1, error, "dash of typography"},
              {"#SBATCH --nodes=2 what\n", 1, error, "belongs to no option"},
              {"#SABTCH --nodes=2\n", 1, warning, "#SBATCH at the beginning"},
              {"# SBATCH --nodes=2\n", 1, note, "comment to the batch system"},
              {"#SBATCH -N 1\na\n#SBATCH -n 2\n", 3, error, "after the first command"},
              {"#SBATCH -N 1\n#PBS -q main\n", 2, warning, "another batch system"}},
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
              {"#PBS -V\n", 1, warning, "whole environment"},
              {"#PBS -n 2\n", 1, error, "-N, the name of the job"},
              {"#PBS -N 2\n", 1, warning, "names the job"}},
             {.name = "generic", .title = "any"});
}

TEST(ScriptLint, PlaceholdersAreNamedByLine) {
  expect_all({{"#SBATCH --account=<code>-delta-gpu\n", 1, error, "edit line 1"},
              {"#SBATCH --account=your-account-name\n", 1, error, "edit line 1"},
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
              {"#SBATCH --time=61\n", 1, error, "at most 1 hours"},
              {"#SBATCH --ntasks-per-node=4\n#SBATCH --cpus-per-task=17\n", 2, error, "68 cores"},
              {"#SBATCH --mem=257G\n", 1, error, "memory"},
              {"#SBATCH --gpus-per-node=5\n", 1, error, "at most 4"},
              {"#SBATCH --gres=gpu:h200:4\n", 1, error, "a100"},
              {"#SBATCH --gres=gpu:geforce:4\n", 1, error, "any more"},
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
              {"#SBATCH --account=x-cpu\n#SBATCH --gpus-per-node=1\n", 1, warning, "-gpu"}},
             slurm_site(), clean_header);
}

TEST(ScriptLint, LimitsOfChunks) {
  const std::string header = "#PBS -q main\n#PBS -l walltime=01:00:00\n";
  expect_all({{"#PBS -l select=83:ncpus=64:ngpus=4\n", 1, error, "at most 82"},
              {"#PBS -l select=1:ncpus=65:ngpus=4\n", 1, error, "has 64"},
              {"#PBS -l select=1:ncpus=129\n", 1, error, "has 128"},
              {"#PBS -l select=1:ngpus=5\n", 1, error, "at most 4"},
              {"#PBS -l select=1:ngpus=4:mem=488gb\n", 1, error, "memory"},
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
              {"srun python -m torch.distributed.launch x.py\n", 1, warning, "deprecated"},
              {"torchrun --master_port=29500 x.py\n", 1, warning, "port 29500"},
              {"torchrun --rdzv_endpoint=$ip:29500 x.py\n", 1, warning, "port 29500"},
              {"#SBATCH --ntasks-per-node=4\nsrun torchrun --nproc_per_node=4 x.py\n", 2, warning, "4 times a node"},
              {"srun --mpi=pmix --gpu-bind=single:1 reduce_all --expect-ranks 4\n", 1, warning, "hides"},
              {"#SBATCH --gpus-per-task=1\nsrun --mpi=pmix reduce_all --expect-ranks 4\n", 1, warning, "hides"},
              {"srun --mpi=pmix reduce_all --expect-ranks 4 --device cuda\n", 1, note, "not yet runnable"},
              {"# lockstep: needs --device cuda\n", 1, note, "not yet runnable"},
              {"#SBATCH --nodes=1\nexport NCCL_NET=\"AWS Libfabric\"\n", 2, note, "one node"}},
             slurm_site(), clean_header);
  EXPECT_TRUE(has(lint("#SBATCH -N 1\nsrun lockstep train t --expect-ranks 4\n"), 1, warning, "--requeue"));
  EXPECT_TRUE(has(lint("#PBS -q main\nsrun x\n", pbs_site()), 2, error, "srun on There"));
  EXPECT_TRUE(has(lint("#PBS -r n\nmpiexec lockstep train t --expect-ranks 2\n", pbs_site()), 1, warning, "-r y"));
}

TEST(ScriptLint, ALauncherInAVariableIsJudgedWhereItIsSet) {
  const auto findings = lint(clean_header + "run=\"srun\"\n$run ./a\n$run ./b\n", slurm_site());
  EXPECT_TRUE(has(findings, 4, warning, "srun without --mpi"));
  EXPECT_EQ(findings.size(), 1U) << listed(findings);
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
  expect_all(
      {{"nodes=( $(scontrol show hostnames $L) )\nnodes_array=($nodes)\n", 2, error, "keeps one element"},
       {"ip=$(srun hostname -I | cut -d \" \" -f 2)\n", 1, warning, "guess"},
       {"ip=$(srun hostname --ip-address)\n", 1, note, "several addresses"},
       {"if [ \"$ENABLE_NCCL_OFI\" = 1 ]; then a; fi\nENABLE_NCCL_OFI=1\n", 1, warning, "before it is set in line 2"},
       {"NCCL_DEBUG=INFO\nx\n", 1, warning, "not exported"},
       {"export MASTER_ADDRESS=a\n", 1, error, "MASTER_ADDR"},
       {"export NCCL_DISABLE_IB=1\n", 1, error, "NCCL_IB_DISABLE"},
       {"export NCCL_NET_GDR_LEVEL=PBH\n", 1, error, "PHB"},
       {"export MASTER_PORT=12355\n", 1, warning, "port 12355 is fixed"},
       {"srun \xe2\x80\x93"
        "c 4 x\n",
        1, error, "dash of typography"},
       {"set -euo pipefail\nmodule load a\n", 1, warning, "set -u before module"}},
      slurm_site());
}

TEST(ScriptLint, WhatLooksLikeASlipAndIsNone) {
  for (const char* const text :
       {"nodes=$(scontrol show hostnames $L)\nnodes_array=($nodes)\n", "a=(b c)\nd=(\"${a[@]}\")\n", "ip=$(hostname)\n",
        "if [ -z \"$A\" ]; then A=1; fi\n", "if [ \"${A:-}\" = 1 ]; then b; fi\nA=1\n",
        "if [ \"$A\" = 1 ]; then b; fi\n", "while [ \"$A\" != 1 ]; do A=1; done\n", "NCCL_DEBUG=INFO x\n",
        "NCCL_DEBUG=INFO\nexport NCCL_DEBUG\n", "export MASTER_PORT=$((10000 + SLURM_JOB_ID % 50000))\n",
        "set -eo pipefail\nmodule load a\n", "set -u\nset +u\nmodule load a\n", "cat <<EOF\nsrun x\nEOF\n",
        "MASTER_ADDR=$(hostname)\ntorchrun --master_addr $MASTER_ADDR $x\n",
        "f() {\n  if [ $A = 1 ]; then b; fi\n}\nA=1\nf\n", "for a in 1 2; do if [ $a = 1 ]; then b; fi; done\na=3\n"})
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

TEST(ScriptLint, FindingsComeByLineAndOnce) {
  const auto findings = lint("#SBATCH --nodes=x\nexport MASTER_ADDRESS=a\nexport NCCL_DEBUG=x\nsrun ./reduce_all\n");
  EXPECT_TRUE(std::ranges::is_sorted(findings, {}, &Finding::line));
  EXPECT_EQ(findings.size(), 4U) << listed(findings);
}

}  // namespace
}  // namespace lockstep::site
