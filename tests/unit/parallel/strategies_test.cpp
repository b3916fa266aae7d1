// A strategy changes where states are and what is sent, and no bit of the result.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "comm/transport_threads.hpp"
#include "core/error.hpp"
#include "parallel/host_synchronizer.hpp"
#include "parallel/traffic.hpp"
#include "unit/parallel/ranks.hpp"

namespace lockstep::parallel {
namespace {

using optim::OptimizerKind;
using support::Nodes;

struct Training {
  OptimizerKind optimizer = OptimizerKind::sgd;
  double clip_norm = 0;
  bool is_deterministic = false;
  Nodes nodes{0, 1};
  std::vector<Slot> slots = support::odd_slots();

  [[nodiscard]] std::string text() const {
    return fmt::format("{}, clip {}{}, {}", optim::name(optimizer), clip_norm,
                       is_deterministic ? ", deterministic" : "", support::describe(nodes));
  }
};

/// All combinations.
std::vector<Training> trainings(const std::vector<Nodes>& placements, const std::vector<OptimizerKind>& optimizers) {
  std::vector<Training> all;
  for (const Nodes& nodes : placements)
    for (const OptimizerKind optimizer : optimizers)
      for (const double clip_norm : {0.0, 2.0})
        for (const bool is_deterministic : {false, true})
          all.push_back({optimizer, clip_norm, is_deterministic, nodes});
  return all;
}

SynchronizerOptions options_of(const Training& which) {
  SynchronizerOptions options{.optimizer = optim::default_spec(which.optimizer)};
  options.buckets = {{support::small_bucket_bytes}, {1'024}, {1'024}};
  options.is_deterministic = which.is_deterministic;
  options.guard_interval = 1;
  if (which.optimizer == OptimizerKind::sgd) options.optimizer.momentum = 0.9;
  return options;
}

/// Where the order of sums is not fixed, they are exact.
void write_gradients_of(const Training& which, HostSynchronizer& synchronizer, int rank, int step) {
  const auto value = which.is_deterministic ? support::odd_value : support::small_integer;
  const auto slots = synchronizer.sharding().slots();
  for (std::size_t slot = 0; slot < slots.size(); ++slot) {  // one after another, as in backward
    support::fill(slots.subspan(slot, 1), synchronizer.gradients(),
                  [&](std::size_t i) { return value(i, rank, step); });
    if (step % 2 == 0) synchronizer.ready(slot);
  }
}

void step_trained(const Training& which, HostSynchronizer& synchronizer, int rank, int step) {
  write_gradients_of(which, synchronizer, rank, step);
  synchronizer.step({.learning_rate = 0.05}, which.clip_norm);
}

/// Each owner sets what it owns, as when a run begins.
void initialize_owned(HostSynchronizer& synchronizer) {
  synchronizer.visit(Access::own, [](const StoredPiece& piece) {
    if (piece.state != "parameter") return;
    for (std::size_t i = 0; i < piece.values.size(); ++i)
      piece.values[i] = support::odd_value(piece.slice.offset + i, 0, 77);
  });
  synchronizer.start({});
}

using ArenaCopy = std::vector<float>;

bool has_bits_of(std::span<const float> arena, const ArenaCopy& expected) {
  return std::ranges::equal(std::as_bytes(arena), std::as_bytes(std::span{expected}));
}

/// The parameters before each step, and after the last.
std::vector<ArenaCopy> parameters_by_ddp(const Training& which, int n_steps) {
  std::vector<ArenaCopy> after;
  comm::run_as_threads(which.nodes, [&](comm::Transport& world) {
    HostSynchronizer synchronizer{world, which.slots, options_of(which), Strategy::ddp};
    initialize_owned(synchronizer);
    for (int step = 0; step <= n_steps; ++step) {
      if (world.rank() == 0) after.emplace_back(synchronizer.parameters().begin(), synchronizer.parameters().end());
      if (step < n_steps) step_trained(which, synchronizer, world.rank(), step);
    }
  });
  return after;
}

TEST(MakeSynchronizer, RefusesAStrategyThatNothingImplements) {
  comm::run_as_threads({0}, [](comm::Transport& world) {
    const auto make = [&](Strategy strategy) {
      return make_synchronizer(strategy, world, nullptr, support::make_slots({10}), options_of({}));
    };
    for (const Strategy strategy : all_strategies) EXPECT_NE(make(strategy), nullptr);
    const auto refusal = core::complaint_of([&] { static_cast<void>(make(Strategy{250})); });
    ASSERT_TRUE(refusal && refusal->code() == core::ExitCode::usage);
    EXPECT_EQ(refusal->problem().expected, "ddp, zero1, zero2, fsdp");
  });
}

/// Compares the parameters of all ranks before each step, and after the last.
void expect_bits_of_ddp(const Training& which) {
  constexpr int n_steps = 3;
  SCOPED_TRACE(which.text());
  const std::vector<ArenaCopy> expected = parameters_by_ddp(which, n_steps);
  comm::run_as_threads(which.nodes, [&](comm::Transport& world) {
    HostSynchronizer synchronizer{world, which.slots, options_of(which), Strategy::zero1};
    initialize_owned(synchronizer);
    for (int step = 0; step <= n_steps; ++step) {
      EXPECT_TRUE(has_bits_of(synchronizer.parameters(), expected[static_cast<std::size_t>(step)]))
          << "rank " << world.rank() << " before step " << step;
      if (step < n_steps) step_trained(which, synchronizer, world.rank(), step);
    }
    EXPECT_FALSE(synchronizer.guard().has_changed());
  });
  EXPECT_EQ(expected.front() == expected.back(), expected.front().empty());
}

TEST(Strategies, GiveTheBitsOfDdp) {
  const std::vector<Nodes> placements{{0, 1}, {0, 0, 1}, {0, 1, 0, 1}};
  for (const Training& which :
       trainings(placements, {OptimizerKind::sgd, OptimizerKind::adamw, OptimizerKind::lamb, OptimizerKind::lars})) {
    expect_bits_of_ddp(which);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Strategies, AlsoWithFewerElementsThanRanks) {
  for (const auto& sizes : {std::vector<std::size_t>{}, {1}, {21}, {1, 1, 1}, {1'024, 3}})
    for (Training which : trainings({{0, 1}, {0, 0, 1, 1}, {0, 1, 2}}, {OptimizerKind::adamw, OptimizerKind::lars})) {
      which.slots = support::make_slots(sizes);
      expect_bits_of_ddp(which);
    }
}

comm::Traffic traffic_of_steps(const Training& which, Strategy strategy, int n_steps) {
  return comm::run_as_threads(which.nodes, [&](comm::Transport& world) {
    HostSynchronizer synchronizer{world, which.slots, options_of(which), strategy};
    initialize_owned(synchronizer);
    for (int step = 0; step < n_steps; ++step) step_trained(which, synchronizer, world.rank(), step);
  });
}

TEST(Strategies, SendWhatIsCountedBefore) {
  for (const Training& which :
       trainings({{0, 0}, {0, 0, 1}, {0, 1, 2, 3}}, {OptimizerKind::sgd, OptimizerKind::lamb})) {
    const Placement placement = place(which.nodes, which.is_deterministic);
    for (const Strategy strategy : all_strategies) {
      SCOPED_TRACE(testing::Message() << name(strategy) << ", " << which.text());
      const SynchronizerOptions options = options_of(which);
      const Sharding sharding = make_sharding(strategy, support::odd_slots(), options.buckets, placement);
      const comm::Cost cost = count_traffic(sharding, {.nodes = which.nodes,
                                                       .is_deterministic = which.is_deterministic,
                                                       .clips = which.clip_norm > 0,
                                                       .has_norms = optim::needs_norms(which.optimizer)});
      const comm::Traffic one = traffic_of_steps(which, strategy, 1), three = traffic_of_steps(which, strategy, 3);
      EXPECT_EQ(three.messages - one.messages, 2 * cost.messages);
      EXPECT_EQ(three.bytes - one.bytes, 2 * cost.bytes);
      EXPECT_EQ(cost.messages > 0, placement.n_nodes > 1);
    }
  }
}

/// How often each element is visited, for one kind of values.
struct Visits {
  std::vector<int> parameters = std::vector<int>(arena_elements(support::odd_slots()));
  std::vector<int> states = parameters;
};

Visits visits_of(const Training& which, Strategy strategy, Access access) {
  Visits visits;
  std::mutex mutex;
  comm::run_as_threads(which.nodes, [&](comm::Transport& world) {
    HostSynchronizer synchronizer{world, which.slots, options_of(which), strategy};
    synchronizer.visit(access, [&](const StoredPiece& piece) {
      const std::scoped_lock lock{mutex};
      auto& counts = piece.state == "parameter" ? visits.parameters : visits.states;
      for (std::size_t i = piece.slice.offset; i < piece.slice.end(); ++i) ++counts[i];
    });
  });
  return visits;
}

/// `n` in all slots, 0 between them.
std::vector<int> in_slots(int n) {
  std::vector<int> counts(arena_elements(support::odd_slots()));
  for (const Slot& slot : support::odd_slots())
    std::fill_n(counts.begin() + static_cast<std::ptrdiff_t>(slot.slice.offset), slot.slice.count, n);
  return counts;
}

TEST(Strategies, KeepEachStateOnceOnAllRanksOrOnceOnANode) {
  for (const Nodes& nodes : support::placements()) {
    const Training which{.optimizer = OptimizerKind::adamw, .nodes = nodes};  // two states
    const int n_nodes = 1 + *std::ranges::max_element(nodes);
    for (const Strategy strategy : all_strategies) {
      SCOPED_TRACE(testing::Message() << name(strategy) << ", " << which.text());
      const Visits own = visits_of(which, strategy, Access::own), kept = visits_of(which, strategy, Access::kept);
      EXPECT_EQ(own.parameters, in_slots(1));
      EXPECT_EQ(own.states, in_slots(2));
      EXPECT_EQ(kept.states, in_slots(2 * (divides_states(strategy) ? 1 : n_nodes)));
    }
  }
}

/// What ranks save of a run, by tensor and state, each in the order of the arena.
using SavedRun = std::map<std::pair<std::size_t, std::string>, ArenaCopy>;

struct StrategyOn {
  Strategy strategy;
  Nodes nodes;
};

TEST(Strategies, GoOnFromWhatAnotherHasSaved) {
  const Training which{.optimizer = OptimizerKind::lamb, .clip_norm = 2, .is_deterministic = true};
  const std::vector<Slot> slots = support::odd_slots();
  // The sum of gradients is the same for any number of ranks.
  const auto step_on_rank_0 = [&](HostSynchronizer& synchronizer, int rank, int step) {
    support::fill(slots, synchronizer.gradients(),
                  [&](std::size_t i) { return rank == 0 ? support::odd_value(i, 0, step) : 0.0F; });
    synchronizer.step({.learning_rate = 0.05}, which.clip_norm);
  };
  const StrategyOn settings[] = {
      {Strategy::ddp, {0}},      {Strategy::ddp, {0, 1}},         {Strategy::zero1, {0, 0}},
      {Strategy::zero1, {0, 1}}, {Strategy::zero1, {0, 0, 1, 1}}, {Strategy::zero1, {0, 1, 0, 1}}};
  for (const StrategyOn& from : settings) {
    SavedRun saved;
    ArenaCopy expected;
    std::mutex mutex;
    comm::run_as_threads(from.nodes, [&](comm::Transport& world) {
      HostSynchronizer synchronizer{world, slots, options_of(which), from.strategy};
      initialize_owned(synchronizer);
      for (int step = 0; step < 2; ++step) step_on_rank_0(synchronizer, world.rank(), step);
      synchronizer.visit(Access::own, [&](const StoredPiece& piece) {
        const core::Slice& slot = slots[piece.slot].slice;
        const std::scoped_lock lock{mutex};
        auto& values = saved[{piece.slot, std::string{piece.state}}];
        values.resize(slot.count, std::numeric_limits<float>::quiet_NaN());
        std::ranges::copy(piece.values, piece.slice.seen_from(slot.offset).of(std::span{values}).begin());
      });
      step_on_rank_0(synchronizer, world.rank(), 2);
      if (world.rank() == 0) expected.assign(synchronizer.parameters().begin(), synchronizer.parameters().end());
    });
    for (const StrategyOn& to : settings) {
      SCOPED_TRACE(testing::Message() << name(from.strategy) << ", " << support::describe(from.nodes) << ", then "
                                      << name(to.strategy) << ", " << support::describe(to.nodes));
      comm::run_as_threads(to.nodes, [&](comm::Transport& world) {
        HostSynchronizer synchronizer{world, slots, options_of(which), to.strategy};
        synchronizer.visit(Access::kept, [&](const StoredPiece& piece) {
          const std::span<const float> values{saved.at({piece.slot, std::string{piece.state}})};
          std::ranges::copy(piece.slice.seen_from(slots[piece.slot].slice.offset).of(values), piece.values.begin());
        });
        synchronizer.start({.n_steps = 2});
        step_on_rank_0(synchronizer, world.rank(), 2);
        EXPECT_TRUE(has_bits_of(synchronizer.parameters(), expected)) << "rank " << world.rank();
      });
    }
  }
}

/// One rank ends a step: by halt(), or by a gradient that is not finite.
void expect_halt_of_zero1(const Nodes& nodes, int by_rank, bool is_finite) {
  const Training which{.clip_norm = 1, .nodes = nodes};
  SCOPED_TRACE(testing::Message() << which.text() << ", by rank " << by_rank);
  comm::run_as_threads(nodes, [&](comm::Transport& world) {
    HostSynchronizer synchronizer{world, which.slots, options_of(which), Strategy::zero1};
    initialize_owned(synchronizer);
    step_trained(which, synchronizer, world.rank(), 0);
    const ArenaCopy before{synchronizer.parameters().begin(), synchronizer.parameters().end()};
    write_gradients_of(which, synchronizer, world.rank(), 1);
    if (world.rank() == by_rank && is_finite) synchronizer.halt();
    if (world.rank() == by_rank && !is_finite) synchronizer.gradients()[17] = std::numeric_limits<float>::infinity();
    synchronizer.step({.learning_rate = 0.05}, which.clip_norm);
    EXPECT_TRUE(has_bits_of(synchronizer.parameters(), before));
    step_trained(which, synchronizer, world.rank(), 2);
    EXPECT_TRUE(has_bits_of(synchronizer.parameters(), before)) << "it does not end by itself";
    synchronizer.start({});
    step_trained(which, synchronizer, world.rank(), 2);
    EXPECT_FALSE(has_bits_of(synchronizer.parameters(), before));
  });
}

TEST(Strategies, NobodyUpdatesOnceOneRankHalts) {
  for (const Nodes& nodes : {Nodes{0, 1}, Nodes{0, 0, 1, 1}, Nodes{0, 0, 1}, Nodes{0, 1, 2}})
    for (const bool is_finite : {true, false})
      for (const int by_rank : {0, static_cast<int>(nodes.size()) - 1}) expect_halt_of_zero1(nodes, by_rank, is_finite);
}

// A rank guards all that it writes of its node: what it updates, and what it gets from other nodes.
TEST(Strategies, TheGuardNamesWhoseParametersHaveChanged) {
  const Training which{.nodes = {0, 0, 1, 1}};
  const std::vector<Slot> slots = support::odd_slots();
  for (const std::size_t at :
       {std::size_t{0}, slots[4].slice.offset, slots[4].slice.end() - 1, slots[8].slice.offset}) {
    std::vector<int> has_changed(4);
    comm::run_as_threads(which.nodes, [&](comm::Transport& world) {
      HostSynchronizer synchronizer{world, slots, options_of(which), Strategy::zero1};
      initialize_owned(synchronizer);
      step_trained(which, synchronizer, world.rank(), 0);
      if (world.rank() == 3) flip_bit(synchronizer.parameters()[at]);
      step_trained(which, synchronizer, world.rank(), 1);
      has_changed[static_cast<std::size_t>(world.rank())] = synchronizer.guard().has_changed() ? 1 : 0;
    });
    EXPECT_EQ(has_changed[0] + has_changed[1], 0) << at;
    EXPECT_EQ(has_changed[2] + has_changed[3], 1) << at;
  }
}

TEST(Strategies, ADrillFlipsABitOfTheRankThatItNames) {
  comm::run_as_threads({0, 0, 1, 1}, [](comm::Transport& world) {
    const Training which{.nodes = {0, 0, 1, 1}};
    HostSynchronizer synchronizer{world, which.slots, options_of(which), Strategy::zero1};
    initialize_owned(synchronizer);
    bool has_part = false;
    synchronizer.visit(Access::kept, [&](const StoredPiece& piece) { has_part |= piece.slot == 4; });
    EXPECT_TRUE(has_part);
    if (world.rank() == 2) {
      EXPECT_TRUE(synchronizer.flip_bit(4));
    }
    step_trained(which, synchronizer, world.rank(), 0);
    EXPECT_EQ(synchronizer.guard().has_changed(), world.rank() == 2);
  });
}

}  // namespace
}  // namespace lockstep::parallel
