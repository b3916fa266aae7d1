// What ranks allocate for parameters, gradients and states is the forecast of the dry run, to the byte, by every
// strategy.
#include "training/train/memory.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "comm/transport_threads.hpp"
#include "core/slice.hpp"
#include "nn/device.hpp"
#include "nn/graph/models.hpp"
#include "parallel/host_synchronizer.hpp"
#include "training/train/learner.hpp"
#include "unit/parallel/ranks.hpp"

namespace {

/// Counts what this thread gets from the operator new that allocates states of optimizers. It is global because that
/// operator is.
thread_local std::uint64_t n_aligned_bytes = 0;

}  // namespace

void* operator new(std::size_t n, std::align_val_t alignment) {
  n_aligned_bytes += n;
  const auto to = static_cast<std::size_t>(alignment);
  void* const memory = std::aligned_alloc(to, lockstep::core::round_up(std::max<std::size_t>(n, 1), to));
  if (memory == nullptr) throw std::bad_alloc{};
  return memory;
}
void operator delete(void* memory, std::align_val_t /*alignment*/) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*n*/, std::align_val_t /*alignment*/) noexcept { std::free(memory); }

namespace lockstep::training {
namespace {

using support::Nodes;

/// There is one per process: from the first test to the last.
std::unique_ptr<nn::Device> host;
class HostLife : public testing::Environment {
 public:
  void SetUp() override { host = nn::open_device(1); }
  void TearDown() override { host.reset(); }
};
const auto* const host_life = testing::AddGlobalTestEnvironment(new HostLife);

constexpr std::uint64_t n_samples = 4;  // of a rank

nn::Network network_of(const Recipe& recipe) {
  if (recipe.model == "toy") return nn::make_model({.name = "toy", .input = {20}, .n_outputs = 1});
  return nn::make_model({.name = recipe.model, .input = {1, 10, 10}, .n_outputs = 10});
}

Recipe recipe_of(const std::string& model, optim::OptimizerKind optimizer, parallel::Strategy strategy,
                 const Nodes& nodes) {
  Recipe recipe;
  recipe.model = model;
  recipe.optimizer = optim::default_spec(optimizer);
  recipe.strategy = strategy;
  recipe.loss = model == "toy" ? nn::Loss::mse : nn::Loss::cross_entropy;
  recipe.batch = n_samples * nodes.size();
  recipe.unit_params = 5'000;
  return recipe;
}

/// In bytes.
struct Taken {
  std::uint64_t shared = 0;                     ///< all segments that ranks of a node share
  std::vector<std::uint64_t> aligned{};         ///< of operator new, by rank
  std::vector<parallel::KeptBytes> reported{};  ///< by rank
  std::size_t n_blocks = 0;                     ///< of one rank's arenas
};

/// The bytes of all segments that ranks share.
template <class Body>
std::uint64_t shared_by(const Nodes& nodes, const Body& body) {
  constexpr core::Seconds patience{300};  // on a busy machine
  return comm::run_as_threads(nodes, body, patience).shared;
}

Taken taken_by(const Recipe& recipe, const Nodes& nodes) {
  Taken taken{.aligned = std::vector<std::uint64_t>(nodes.size()),
              .reported = std::vector<parallel::KeptBytes>(nodes.size())};
  taken.shared = shared_by(nodes, [&](comm::Transport& world) {
    metrics::PhaseTimers timers;
    n_aligned_bytes = 0;
    Learner learner{world.communicator(), world, nullptr, *host, recipe, network_of(recipe), n_samples, timers};
    const auto rank = static_cast<std::size_t>(world.rank());
    taken.aligned[rank] = n_aligned_bytes;
    taken.reported[rank] = learner.synchronizer().kept();
    if (rank == 0)
      for (const core::Slice& bucket : learner.synchronizer().sharding().buckets())
        taken.n_blocks += parallel::blocks_in(learner.synchronizer().sharding().slots(), bucket).size();
    world.communicator().barrier();  // no rank frees what others still read
  });
  return taken;
}

/// What ranks share beside arenas: flags and hashes, as without parameters, and three numbers for each block.
std::uint64_t shared_beside_arenas(const Nodes& nodes, std::size_t n_blocks) {
  const std::uint64_t without = shared_by(nodes, [](comm::Transport& world) {
    const parallel::HostSynchronizer empty{world, {}, {}};
    world.communicator().barrier();
  });
  const auto n_nodes = static_cast<std::uint64_t>(1 + *std::ranges::max_element(nodes));
  return without + n_nodes * 3 * sizeof(double) * n_blocks;
}

// Nodes have as many ranks each. The forecast is that of the rank that keeps most.
TEST(StrategyMemory, OfArenasAndStatesIsTheForecast) {
  using optim::OptimizerKind;
  for (const Nodes& nodes : {Nodes{0}, {0, 0}, {0, 1}, {0, 0, 1, 1}, {0, 1, 2, 3}})
    for (const std::string model : {"toy", "mnist_cnn"})
      for (const parallel::Strategy strategy : parallel::strategies_on(false)) {
        const Taken none = taken_by(recipe_of(model, OptimizerKind::sgd, strategy, nodes), nodes);  // no states
        for (const OptimizerKind optimizer : {OptimizerKind::adamw, OptimizerKind::lars}) {
          SCOPED_TRACE(testing::Message() << parallel::name(strategy) << ", " << model << ", " << optim::name(optimizer)
                                          << ", " << support::describe(nodes));
          const Recipe recipe = recipe_of(model, optimizer, strategy, nodes);
          const auto n_nodes = static_cast<std::uint64_t>(1 + *std::ranges::max_element(nodes));
          const std::uint64_t n_local = nodes.size() / n_nodes;
          const MemoryNeed need =
              memory_need(*host, recipe, network_of(recipe), n_samples, static_cast<int>(nodes.size()), n_local);
          const Taken taken = taken_by(recipe, nodes);
          EXPECT_EQ(taken.shared, n_nodes * need.shared(n_local) + shared_beside_arenas(nodes, taken.n_blocks));
          std::uint64_t most_of_states = 0, most_of_parts = 0;
          for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
            const parallel::KeptBytes& reported = taken.reported[rank];
            EXPECT_EQ(reported.states, taken.aligned[rank] - none.aligned[rank]) << rank;
            EXPECT_EQ(reported.shared, need.parameters + need.pool);
            EXPECT_EQ(reported.gradients, need.gradients);
            most_of_states = std::max(most_of_states, reported.states);
            most_of_parts = std::max(most_of_parts, reported.own);
          }
          EXPECT_GT(most_of_states, 0U);
          EXPECT_EQ(most_of_states, need.states);
          EXPECT_EQ(most_of_parts, need.parts);
        }
      }
}

}  // namespace
}  // namespace lockstep::training
