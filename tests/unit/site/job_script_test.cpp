#include "site/job_script.hpp"

#include <gtest/gtest.h>

namespace lockstep::site {
namespace {

std::string value_of(const JobScript& script, std::string_view name) {
  const Flag* const flag = directive(script, name);
  return flag != nullptr ? flag->value.value_or("(no value)") : "(no flag)";
}

TEST(JobScript, DirectivesOfSlurmInAllTheirForms) {
  const JobScript script = read_job_script(R"(#!/bin/bash
#SBATCH --nodes=2            # comment
#SBATCH -n 8 -c4
#SBATCH --job-name="a # b" --requeue
#SBATCH --exclusive
#SBATCH --time 00:10:00
##SBATCH --mem=1G
#SBATCH --part=gpu

#SBATCH --nodes=3
echo begun
#SBATCH --qos=late
)");
  EXPECT_EQ(script.system, BatchSystem::slurm);
  EXPECT_EQ(value_of(script, "nodes"), "3");  // the last one counts
  EXPECT_EQ(value_of(script, "ntasks"), "8");
  EXPECT_EQ(value_of(script, "cpus-per-task"), "4");
  EXPECT_EQ(value_of(script, "job-name"), "a # b");
  EXPECT_EQ(value_of(script, "requeue"), "(no value)");
  EXPECT_EQ(value_of(script, "exclusive"), "(no value)");
  EXPECT_EQ(value_of(script, "time"), "00:10:00");
  EXPECT_EQ(value_of(script, "mem"), "(no flag)");
  EXPECT_EQ(value_of(script, "partition"), "gpu");  // any beginning that is one option's alone
  EXPECT_EQ(value_of(script, "qos"), "(no flag)");
  ASSERT_EQ(script.late.size(), 1U);
  EXPECT_EQ(script.late[0].line, 12);
  EXPECT_EQ(directive(script, "nodes")->line, 10);
}

TEST(JobScript, DirectivesOfPbs) {
  const JobScript script = read_job_script(
      "#PBS -N all\n#PBS -l select=2:ncpus=64:mpiprocs=4 -l walltime=00:20:00\n#PBS -joe\n#PBS -V\n#PBS -n 2\n");
  EXPECT_EQ(script.system, BatchSystem::pbs);
  EXPECT_EQ(value_of(script, "N"), "all");
  EXPECT_EQ(value_of(script, "j"), "oe");
  EXPECT_EQ(value_of(script, "l"), "walltime=00:20:00");
  EXPECT_TRUE(directive(script, "V") != nullptr);
  EXPECT_FALSE(directive(script, "n")->is_known);
}

TEST(JobScript, HereDocumentsHoldNoDirectivesAndNoComments) {
  const JobScript script = read_job_script(
      "#SBATCH -N 1\nsbatch <<EOF\n#SBATCH --nodes=$n\nEOF\ncat > run.pbs <<'END OF IT'\n#PBS -l walltime=1\n"
      "# lockstep: site=delta\nEND OF IT\n#SBATCH -n 2\n");
  ASSERT_EQ(script.late.size(), 1U);
  EXPECT_EQ(script.late[0].line, 9);
  EXPECT_TRUE(script.of_other.empty());
  EXPECT_FALSE(find_mark(script, "site"));
}

TEST(JobScript, WordsThatBelongToNoFlagAreKept) {
  const JobScript script = read_job_script("#SBATCH \xe2\x80\x93nodes=2 --ntasks=4 stray\n#PBS -q main\n");
  ASSERT_EQ(script.stray.size(), 2U);
  EXPECT_EQ(script.stray[1].text, "stray");
  EXPECT_EQ(value_of(script, "ntasks"), "4");
  EXPECT_EQ(script.of_other.size(), 1U);
}

TEST(JobScript, VariablesAndWhetherAProgramGetsThem) {
  const JobScript script = read_job_script("export A=1 B=\"2 3\"\nC=4 srun x\nD=5\nE=6\nexport E\nenv F=7 x\n");
  ASSERT_EQ(script.variables.size(), 6U);
  EXPECT_EQ(script.variables[1].value, "2 3");
  EXPECT_EQ(script.variables[2].line, 2);
  ASSERT_EQ(script.unexported.size(), 1U);
  EXPECT_EQ(script.unexported[0].name, "D");
}

TEST(JobScript, LaunchesAndTheirPrograms) {
  const JobScript script = read_job_script(
      "OMP_NUM_THREADS=1 exec srun -N2 --mpi=pmix -c 4 ./a --b\n"
      "timeout 10 mpirun -np 4 --map-by ppr:2:node -x A --mca btl ^openib c d\n"
      "/opt/pals/mpiexec -n 8 -ppn 4 -d 16 --cpu-bind depth e\n");
  ASSERT_EQ(script.launches.size(), 3U);
  EXPECT_EQ(script.launches[0].launcher, Launcher::srun);
  EXPECT_EQ(last_of(script.launches[0].flags, "nodes")->value, "2");
  EXPECT_EQ(script.launches[0].program, (std::vector<std::string>{"./a", "--b"}));
  EXPECT_EQ(script.launches[1].launcher, Launcher::mpirun);
  EXPECT_EQ(script.launches[1].program, (std::vector<std::string>{"c", "d"}));
  EXPECT_EQ(script.launches[1].line, 2);
  EXPECT_EQ(script.launches[2].launcher, Launcher::mpiexec);
  EXPECT_EQ(last_of(script.launches[2].flags, "ppn")->value, "4");
  EXPECT_EQ(script.launches[2].program, (std::vector<std::string>{"e"}));
}

TEST(JobScript, TwoDashesEndTheFlagsOfEachLauncher) {
  for (const std::string text : {"srun -n 4 -- x -n 2\n", "mpirun -n 4 -- x -n 2\n", "torchrun --nnodes=2 -- x -n 2\n",
                                 "launch -- x -n 2\n", "python3 -u -m torch.distributed.run -- x -n 2\n"}) {
    const JobScript script = read_job_script(text);
    ASSERT_EQ(script.launches.size(), 1U) << text;
    EXPECT_EQ(script.launches[0].program, (std::vector<std::string>{"x", "-n", "2"})) << text;
  }
}

TEST(JobScript, LaunchersWithinLaunchersAndOfPython) {
  const JobScript script = read_job_script(
      "srun torchrun --nproc-per-node=4 --standalone t.py 5\n"
      "python -m torch.distributed.launch --use_env --nproc_per_node 2 ddp.py --lr=1\n");
  ASSERT_EQ(script.launches.size(), 3U);
  EXPECT_EQ(script.launches[1].launcher, Launcher::torchrun);
  EXPECT_EQ(last_of(script.launches[1].flags, "nproc_per_node")->value, "4");
  EXPECT_EQ(script.launches[1].program.front(), "t.py");
  EXPECT_EQ(script.launches[2].launcher, Launcher::torch_launch);
  EXPECT_EQ(script.launches[2].program.front(), "ddp.py");
}

TEST(JobScript, LaunchersThatAVariableHolds) {
  const JobScript script =
      read_job_script("run=\"srun --mpi=pmix\"\nlist=(mpirun -np 4)\n$run ./a\n\"${list[@]}\" ./b --c\n$other ./d\n");
  ASSERT_EQ(script.launches.size(), 4U);
  EXPECT_EQ(script.launches[0].variable, "run");
  EXPECT_EQ(script.launches[2].line, 3);
  EXPECT_EQ(script.launches[2].program, (std::vector<std::string>{"./a"}));
  EXPECT_EQ(script.launches[3].launcher, Launcher::mpirun);
  EXPECT_EQ(script.launches[3].program, (std::vector<std::string>{"./b", "--c"}));
}

TEST(JobScript, MarksAreReadFromComments) {
  const JobScript script =
      read_job_script("# lockstep: site=delta\n#lockstep: goal --device cuda\n# other: site=ibex\n");
  EXPECT_EQ(find_mark(script, "site")->text, "delta");
  EXPECT_EQ(find_mark(script, "goal")->text, "--device cuda");
  EXPECT_EQ(find_mark(script, "goal")->line, 2);
  EXPECT_FALSE(find_mark(script, "sit"));
}

TEST(JobScript, SmallTextsTakeNoGreatMemory) {
  std::string chain, held, filled = "b='c c c c c c c c'\n";
  for (int i = 0; i < 5000; ++i) {
    chain += "srun ";
    held += "a=srun\n$a b\n";
    filled += "srun $b\n";
  }
  EXPECT_LE(read_job_script(filled).launches.size(), 2000U);
  EXPECT_LE(read_job_script(chain).launches.size(), 10U);
  EXPECT_LE(read_job_script(held).launches.size(), 1'000'000U);
}

TEST(JobScript, TheLibraryOfASite) {
  const auto library = [](std::string_view text) { return std::string{sourced_library(read_job_script(text))}; };
  EXPECT_EQ(library(". \"${LOCKSTEP_ROOT:?module load lockstep}/share/lockstep/batch/lib/delta.sh\" cpu\n"), "delta");
  EXPECT_EQ(library("source lib/generic-slurm.sh\n"), "generic-slurm");
  EXPECT_EQ(library(". /etc/profile.d/lmod.sh\n. ../lib/ibex.sh gpu\n"), "ibex");
  EXPECT_EQ(library("bash lib/delta.sh\n. delta.sh\n.\n"), "");
}

}  // namespace
}  // namespace lockstep::site
