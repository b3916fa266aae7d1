// Training on GPUs gives the same result as on the host by one rank: the recipes' models, on several numbers of ranks.
#include <charconv>

#include "comm/device_plan.hpp"
#include "runtime/communicator.hpp"
#include "support/train_on_made_up_gpus.hpp"

namespace lockstep::training {
namespace {

using support::Ended;
using support::expect_near;
using support::has;
using support::loss_of;
using support::matches;
using support::trained;
using support::Variables;
using support::world;

class Learned : public support::OnMadeUpGpus {};

struct Losses {
  double trained = 0;
  double evaluated = 0;
};

Losses losses_of(const Ended& ended) { return {loss_of(ended), loss_of(ended, "evaluation")}; }

/// Collective: the losses of a run by the first rank alone.
Losses learned_alone(const std::string& line) {
  const auto ended = support::trained_alone(line);
  return runtime::broadcast_value(world(), ended ? losses_of(*ended) : Losses{});
}

void expect_same(const Losses& mine, const Losses& expected, double tolerance) {
  expect_near(mine.trained, expected.trained, tolerance);
  expect_near(mine.evaluated, expected.evaluated, tolerance);
}

/// The GPU memory that a run or dry run reports, in bytes; it has three digits.
double memory_told(const std::string& text) {
  std::smatch told;
  if (!std::regex_search(text, told, std::regex{"\nmemory +([0-9.]+) ([kM]?)B of GPU memory per rank[, ]"})) {
    ADD_FAILURE() << text;
    return 0;
  }
  const std::string unit = told[2];
  return std::stod(told[1]) * (unit == "M" ? 1e6 : unit == "k" ? 1e3 : 1);
}

// Except for some bytes, and as exactly as three digits allow.
void expect_memory_as_told(const Ended& run, const std::string& line) {
  const auto taken = static_cast<double>(test::made_up_gpu().peak_bytes());
  const double told = memory_told(run.err);
  EXPECT_EQ(memory_told(trained(line + " --device cuda --dry-run").out), told);
  expect_near(taken - 256, told, 0.006);
}

struct Case {
  std::string name;
  std::string line;
  double tolerance = 0.001;  ///< relative to the host's result
  std::string precision = "f32";
};

// Results of GPUs that all ranks share equal those of one rank within a thousandth.
void expect_learned(const Case& which) {
  SCOPED_TRACE(which.name);
  const std::string line = which.line + " --precision " + which.precision;
  const Losses host = learned_alone(line + " --device host --run-dir " + which.name + "-host");
  const Ended run = trained(line + " --device cuda --share-gpu --run-dir " + which.name);
  EXPECT_TRUE(matches(run.err, "^device  made-up GPU")) << run.err;
  expect_same(losses_of(run), host, which.tolerance);
  if (world().n_ranks() == 1)
    expect_memory_as_told(run, line);
  else if (which.tolerance > 0.001)
    expect_same(losses_of(run), learned_alone(line + " --device cuda --run-dir " + which.name + "-alone"), 0.001);
}

const Case toy{"toy", "toy 3"};
const Case movielens{"movielens", "movielens --synthetic --max-steps 4"};
const Case clipped{"clipped", "movielens --synthetic --max-steps 4 --clip-norm 0.1 --accumulate 2"};
const Case digits{"digits", "digits --synthetic-samples 48 --batch 12 --max-steps 2"};
// Images are sent to GPUs as pixels, with one size for training and another for evaluation.
const Case cropped{"cropped",
                   "digits --synthetic-samples 48 --batch 12 --max-steps 3 --graph step --augment "
                   "crop:28:3,flip,normalize:0.156:0.186 --val-augment "
                   "centercrop:20,resize:24,centercrop:28,normalize:0.2:0.3"};
const Case rounded{"rounded", "digits --synthetic-samples 48 --batch 12 --max-steps 2", 0.02, "bf16"};
// Groups of batch normalization are within one of two ranks, and over two of four.
const Case resnet18{
    "resnet18",
    "cifar_resnet18 --synthetic --synthetic-steps 1 --batch 4 --bn-group 2 --max-steps 2 --lr 0.01 --val-split="};
// Batch normalization of 32 values in its last layers turns differences of 1e-7 into about 1e-2: the host's own
// instruction sets differ by 3.5 %. Half the gradient would be 12 % off.
const Case resnet50{
    "resnet50",
    "resnet50_synthetic --image-size 64 --batch 8 --bn-group 8 --synthetic-steps 1 --max-steps 2 --lr 0.005", 0.05};

TEST_F(Learned, AsOnTheHost) {
  for (const Case& which : {toy, movielens, digits}) expect_learned(which);
  if (world().n_ranks() == 1) return;
  for (const Case& which : {clipped, cropped, rounded, resnet18}) expect_learned(which);
}

TEST_F(Learned, RunJsonTellsWhere) {
  const Ended run = trained("toy 1 --device cuda --share-gpu --run-dir r");
  EXPECT_TRUE(matches(run.out, "^device  +[0-9.]+ .* rank [0-9] ") || world().n_ranks() == 1) << run.out;
  EXPECT_TRUE(has(support::files_here()["./r/run.json"], "\"uuids\": ["));
}

// The cases that are too long for check: all numbers of ranks, and ResNet-50.
TEST_F(Learned, DISABLED_AsOnTheHostByAllRecipes) {
  const int n = world().n_ranks();
  if (n > 2)
    for (const Case& which : {toy, movielens, digits}) expect_learned(which);
  if (n == 3)
    for (const Case& which : {clipped, rounded}) expect_learned(which);
  if (n == 4 || n == 1) expect_learned(resnet18);
  if (n == 3) return;
  const Variables variables{{{"LOCKSTEP_MADE_UP_GPU_BYTES", "4000000000"}}};
  expect_learned(resnet50);
}

// With and without registration, by a library of the host in NCCL's place.
TEST_F(Learned, OnGpusOfTheirOwnAsWhereRanksShareOne) {
  if (world().n_ranks() != 2) return;
  const double shared = loss_of(trained("toy 3 --precision f32 --device cuda --share-gpu --run-dir shared"));
  const Variables own{{{"LOCKSTEP_MADE_UP_GPUS", "2"}}};
  const std::string line = "toy 3 --precision f32 --run-dir ";
  const Ended registered = trained(line + "own");
  const bool is_registered = has(registered.err, "gradients registered with NCCL\n");
  EXPECT_TRUE(has(registered.err, "device  2 GPUs, such as made-up GPU")) << registered.err;
  expect_near(loss_of(registered), shared, 0.001);
  EXPECT_EQ(is_registered, !comm::nccl_version().empty() && !comm::registration_obstacle(comm::Registration::local));
  if (!is_registered) return;
  // A program does not use what an NCCL older than the one it was built with lacks.
  for (const auto& [variable, value] :
       {std::pair{"LOCKSTEP_HOST_NCCL_REGISTERS", "none"}, {"LOCKSTEP_HOST_NCCL_VERSION", "21800"}}) {
    const Variables variables{{{variable, value}}};
    const Ended unregistered = trained(line + variable);
    EXPECT_TRUE(has(unregistered.err, "device  2 GPUs, such as made-up GPU\n")) << unregistered.err;
    EXPECT_EQ(loss_of(unregistered), loss_of(registered));
  }
}

// Before any training.
TEST_F(Learned, ALibraryThatConnectsNobodyOrIsTooOldIsTold) {
  if (world().n_ranks() != 2 || comm::nccl_version().empty()) return;
  const Variables own{{{"LOCKSTEP_MADE_UP_GPUS", "2"}}};
  const std::vector<std::string> unconnected{": system error: no interface that was asked for (--device cuda)\n",
                                             "NCCL_SOCKET_IFNAME", "; or --device host\n"};
  support::expect_all(
      support::lockstep_line,
      {
          {{2}, "train toy 3", unconnected, {{"LOCKSTEP_HOST_NCCL_UNCONNECTED", "identifier"}}, 2},
          {{2}, "train toy 3", unconnected, {{"LOCKSTEP_HOST_NCCL_UNCONNECTED", "ranks"}}, 2},
          {{2},
           "train toy 3",
           {"error: NCCL 2.17.4 is too old (libnccl.so.2)\n", "LD_LIBRARY_PATH", "; or --device host\n"},
           {{"LOCKSTEP_HOST_NCCL_VERSION", "21704"}},
           2},
          {{2}, "doctor --recipe toy", {"NCCL 2.17.4 is too old\n"}, {{"LOCKSTEP_HOST_NCCL_VERSION", "21704"}}, 1},
      });
}

}  // namespace
}  // namespace lockstep::training
