#include "site/request.hpp"

#include <gtest/gtest.h>

namespace lockstep::site {
namespace {

Chunk first_chunk(const std::string& text) { return read_request(read_job_script(text)).chunks.at(0); }

TEST(Request, RanksOfANode) {
  EXPECT_EQ(first_chunk("#SBATCH -N 2 -n 7\n").ranks->value, 4);
  EXPECT_EQ(first_chunk("#SBATCH -N 2-4 --ntasks-per-node=8 -c 2\n").cores->value, 16);
  EXPECT_EQ(first_chunk("#SBATCH -N 2-4 --ntasks-per-node=8\n").nodes->value, 4);
  EXPECT_EQ(first_chunk("#SBATCH --ntasks=8 --ntasks-per-node=4\n").nodes->value, 2);
  EXPECT_FALSE(first_chunk("#SBATCH --nodes=many\n").nodes);
}

TEST(Request, GpusOfANode) {
  EXPECT_EQ(first_chunk("#SBATCH -N 2 --gpus=8\n").gpus->value, 4);
  EXPECT_EQ(first_chunk("#SBATCH --gpus-per-node=a100:4\n").gpu->value, "a100");
  EXPECT_EQ(first_chunk("#SBATCH --gres=gpu:b200:8\n").gpus->value, 8);
  EXPECT_EQ(first_chunk("#SBATCH --ntasks-per-node=4 --gpus-per-task=1\n").gpus->value, 4);
}

TEST(Request, NumbersThatNoJobHasAreLeftOut) {
  const Chunk chunk =
      first_chunk("#SBATCH --ntasks-per-node=9223372036854775807 --cpus-per-task=9223372036854775807\n");
  EXPECT_FALSE(chunk.ranks);
  EXPECT_FALSE(chunk.cores);
}

TEST(Request, ChunksOfPbs) {
  const Request request = read_request(read_job_script(
      "#PBS -l select=2:ncpus=64:mpiprocs=4:ngpus=4:mem=480gb+1:ncpus=128,walltime=06:00:00\n#PBS -q main\n"));
  ASSERT_EQ(request.chunks.size(), 2U);
  EXPECT_EQ(request.chunks[0].nodes->value, 2);
  EXPECT_EQ(request.chunks[0].gpus->value, 4);
  EXPECT_EQ(request.chunks[0].memory_gb->value, 480);
  EXPECT_EQ(request.chunks[1].cores->value, 128);
  EXPECT_EQ(request.minutes->value, 360);
  EXPECT_EQ(request.partition->value, "main");
}

}  // namespace
}  // namespace lockstep::site
