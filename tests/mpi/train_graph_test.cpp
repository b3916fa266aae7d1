// --graph: the bits are the same if nothing of a step is replayed, or passes, or all of it.
#include "runtime/communicator.hpp"
#include "support/train_on_made_up_gpus.hpp"

namespace lockstep::training {
namespace {

using support::digest_of;
using support::Ended;
using support::expect_near;
using support::loss_of;
using support::trained;
using support::world;

class Graphs : public support::OnMadeUpGpus {
  support::Variables gpus_{{{"LOCKSTEP_MADE_UP_GPUS", std::to_string(world().n_ranks())}}};
};

/// Runs end with the same bits, by replays on each rank unless they are off. Returns the last run.
Ended expect_same_bits(const std::string& line) {
  SCOPED_TRACE(line);
  std::string expected;
  Ended ended;
  for (const std::string graph : {"off", "compute", "step"}) {
    ended = trained(line + " --digest --graph " + graph + " --run-dir " + graph);
    if (expected.empty()) expected = digest_of(ended);
    EXPECT_EQ(digest_of(ended), expected) << graph;
    EXPECT_EQ(test::made_up_gpu().n_replays() == 0, graph == "off") << graph;
    world().barrier();
    if (world().rank() == 0) std::filesystem::remove_all(graph);
  }
  return ended;
}

TEST_F(Graphs, ChangeNoBit) {
  if (world().n_ranks() != 2) return;
  {
    const support::Variables one{{{"LOCKSTEP_MADE_UP_GPUS", "1"}}};
    expect_same_bits("toy 6 --device cuda --share-gpu");
  }
  expect_same_bits("movielens --synthetic --max-steps 5");
  expect_same_bits("movielens --synthetic --max-steps 4 --accumulate 4");  // batches in parts
}

const std::string resnet18 =
    "resnet50_synthetic --model resnet18 --image-size 32 --batch 4 --lr 0.0001 --precision f32 ";

/// Collective: the loss of the same training on the host by one rank.
double host_loss(const std::string& line) {
  const auto ended = support::trained_alone(line + " --device host --run-dir host");
  return runtime::broadcast_value(world(), ended ? loss_of(*ended) : 0.0);
}

// Batch normalization sums over all ranks, or over two each.
TEST_F(Graphs, ChangeNoBitOfGroupsOverRanks) {
  if (world().n_ranks() == 2) {
    const std::string line = resnet18 + "--synthetic-steps 3 --max-steps 3 --bn-group 4";
    expect_near(loss_of(expect_same_bits(line)), host_loss(line), 0.001);
  }
  if (world().n_ranks() == 4) expect_same_bits(resnet18 + "--synthetic-steps 3 --max-steps 3 --bn-group 2");
}

// They take part in all sums in the same order.
TEST_F(Graphs, RanksWithoutSamplesOfALastBatchTakePart) {
  if (world().n_ranks() != 4) return;
  const std::string line = resnet18 + "--bn-group 4 --synthetic-samples 6 --epochs 1 --no-drop-last";
  expect_near(loss_of(trained(line + " --run-dir r")), host_loss(line), 0.001);
}

}  // namespace
}  // namespace lockstep::training
