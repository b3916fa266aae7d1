#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "comm/transport_threads.hpp"
#include "parallel/host_synchronizer.hpp"
#include "unit/parallel/ranks.hpp"

namespace lockstep::parallel {
namespace {

using optim::OptimizerKind;
using support::Nodes;

SynchronizerOptions options_for(OptimizerKind kind, bool is_deterministic = false) {
  SynchronizerOptions options{.optimizer = optim::default_spec(kind), .is_deterministic = is_deterministic};
  options.buckets = {{support::small_bucket_bytes}, {1'024}, {1'024}};
  options.guard_interval = 1;
  return options;
}

/// Events of one step, besides the gradients.
struct Step {
  double lr = 0.25;
  float scale = 1;
  double clip_norm = 0;
};

using Gradient = float (*)(std::size_t element, int rank, int step);

/// The same steps by one optimizer over everything, with sums in double.
class Serial {
 public:
  Serial(std::vector<Slot> slots, const optim::OptimizerSpec& spec)
      : slots_{std::move(slots)},
        parameters_(arena_elements(slots_)),
        sum_(arena_elements(slots_)),
        optimizer_{spec, segments(), parameters_.size()} {}

  [[nodiscard]] std::span<float> parameters() { return parameters_; }

  /// The norm before clipping.
  double step(const Step& step, int n_ranks, int number, Gradient gradient) {
    double squares = 0;
    support::fill(slots_, sum_, [&](std::size_t i) {
      double sum = 0;
      for (int rank = 0; rank < n_ranks; ++rank) sum += static_cast<double>(gradient(i, rank, number));
      squares += sum * sum * step.scale * step.scale;
      return static_cast<float>(sum);
    });
    const double norm = std::sqrt(squares);
    const double factor = step.clip_norm > 0 ? std::min(1.0, step.clip_norm / (norm + 1e-6)) : 1;
    const std::span<const float> source{sum_};
    optimizer_.step(step.lr, step.scale * static_cast<float>(factor), {&source, 1}, parameters_);
    return norm;
  }

 private:
  [[nodiscard]] std::vector<optim::Segment> segments() const {
    std::vector<optim::Segment> all;
    for (const Slot& slot : slots_) all.push_back({slot.slice, slot.decays});
    return all;
  }

  std::vector<Slot> slots_;
  std::vector<float> parameters_;
  std::vector<float> sum_;
  optim::Optimizer optimizer_;
};

struct Case {
  SynchronizerOptions options;
  std::vector<Slot> slots = support::odd_slots();
  std::vector<Step> steps = std::vector<Step>(4);
  Gradient gradient = support::small_integer;
  double tolerance_ulp = 0;
};

float initial_value(std::size_t element) { return support::small_integer(element, 0, 77); }

/// Runs `which` on every rank of `nodes` and compares the parameters after every step.
void expect_serial(const Nodes& nodes, const Case& which) {
  SCOPED_TRACE(support::describe(nodes));
  Serial serial{which.slots, which.options.optimizer};
  support::fill(which.slots, serial.parameters(), initial_value);
  std::vector<std::vector<float>> expected;
  std::vector<double> norms;
  for (std::size_t s = 0; s < which.steps.size(); ++s) {
    norms.push_back(serial.step(which.steps[s], static_cast<int>(nodes.size()), static_cast<int>(s), which.gradient));
    expected.emplace_back(serial.parameters().begin(), serial.parameters().end());
  }
  comm::run_as_threads(nodes, [&](comm::Transport& world) {
    HostSynchronizer synchronizer{world, which.slots, which.options};
    if (world.rank() == 0) support::fill(which.slots, synchronizer.parameters(), initial_value);
    synchronizer.start({});
    for (std::size_t s = 0; s < which.steps.size(); ++s) {
      for (std::size_t slot = 0; slot < which.slots.size(); ++slot) {  // one after another, as in backward
        support::fill({&which.slots[slot], 1}, synchronizer.gradients(),
                      [&](std::size_t i) { return which.gradient(i, world.rank(), static_cast<int>(s)); });
        if (s % 2 == 0) synchronizer.ready(slot);
      }
      const Step& step = which.steps[s];
      const double norm = synchronizer.step({.learning_rate = step.lr, .scale = 1 / step.scale}, step.clip_norm);
      if (step.clip_norm > 0)
        EXPECT_NEAR(norm, norms[s], 1e-6 * norms[s]);
      else
        EXPECT_EQ(norm, 0);
      EXPECT_LE(support::distance_in_ulp(synchronizer.parameters(), expected[s]), which.tolerance_ulp) << "step " << s;
    }
  });
}

void expect_serial_everywhere(const Case& which) {
  for (const Nodes& nodes : support::placements()) expect_serial(nodes, which);
}

TEST(HostSynchronizer, MomentumIsExact) {
  for (const bool is_deterministic : {false, true}) {
    Case which{options_for(OptimizerKind::sgd, is_deterministic)};
    which.options.optimizer.momentum = 0.5;
    expect_serial_everywhere(which);
  }
}

// With integer gradients, so the sums are exact: an owner's slice is updated as in the whole.
TEST(HostSynchronizer, ElementwiseOptimizersGiveTheSameBits) {
  for (const OptimizerKind kind : {OptimizerKind::adam, OptimizerKind::adamw, OptimizerKind::adadelta}) {
    Case which{options_for(kind)};
    which.options.optimizer.weight_decay = 0.01;
    which.steps = {{.lr = 1e-2, .scale = 0.125F}, {.lr = 2e-2, .scale = 0.125F}, {.lr = 1e-3, .scale = 0.25F}};
    expect_serial_everywhere(which);
  }
}

TEST(HostSynchronizer, OptimizersThatNeedNormsOfWholeTensors) {
  for (const OptimizerKind kind : {OptimizerKind::lars, OptimizerKind::lamb}) {
    Case which{options_for(kind)};
    which.options.optimizer.weight_decay = 0.01;
    which.steps = std::vector<Step>(3, {.lr = 0.5, .scale = 0.125F});
    which.tolerance_ulp = 4;  // sums of squares are rounded in another order
    expect_serial_everywhere(which);
  }
}

/// All ranks pull in the same direction, so that sums do not cancel.
float odd_gradient(std::size_t element, int rank, int step) {
  const float size = 1 + std::abs(support::odd_value(element, rank, step));
  return element % 2 == 0 ? size : -size;
}

TEST(HostSynchronizer, OddGradientsAreSummedWithinAFewUlp) {
  for (const bool is_deterministic : {false, true}) {
    Case which{options_for(OptimizerKind::sgd, is_deterministic)};
    which.gradient = odd_gradient;
    which.steps = {{.lr = 64}};  // far from the initial values: differences of close values are inexact
    which.tolerance_ulp = 12;
    expect_serial_everywhere(which);
  }
}

TEST(HostSynchronizer, ClipsByTheNormOfAllGradients) {
  Case which{options_for(OptimizerKind::sgd)};
  which.steps = {{.clip_norm = 1}, {.scale = 0.5F, .clip_norm = 2}, {.clip_norm = 1e9}, {}, {.clip_norm = 10}};
  which.tolerance_ulp = 8;
  expect_serial_everywhere(which);
  which.options = options_for(OptimizerKind::lamb);
  expect_serial_everywhere(which);
}

TEST(HostSynchronizer, RanksWithoutSamples) {
  Case which{options_for(OptimizerKind::sgd)};
  which.gradient = [](std::size_t i, int rank, int step) {
    return (rank + step) % 2 == 1 ? 0.0F : support::small_integer(i, rank, step);
  };
  expect_serial_everywhere(which);
  which.gradient = [](std::size_t, int, int) { return 0.0F; };
  which.steps = {{.clip_norm = 1}, {}};
  expect_serial_everywhere(which);
}

TEST(HostSynchronizer, NoSlotsAndTinyOnes) {
  for (const auto& sizes : {std::vector<std::size_t>{}, {0, 0}, {1}, {21}, {1, 1, 1}}) {
    Case which{options_for(OptimizerKind::sgd)};
    which.slots = support::make_slots(sizes);
    which.steps = {{}, {.clip_norm = 1e9}, {}};
    expect_serial_everywhere(which);
    which.options.optimizer = optim::default_spec(OptimizerKind::lars);
    which.tolerance_ulp = 4;
    expect_serial_everywhere(which);
  }
}

TEST(HostSynchronizer, InitialParametersArriveBitByBit) {
  const auto slots = support::odd_slots();
  std::vector<float> initial(arena_elements(slots));
  support::fill(slots, initial, [](std::size_t i) { return support::odd_value(i, 0, 0); });
  initial[0] = -0.0F;
  initial[1] = std::numeric_limits<float>::denorm_min();
  initial[20] = -std::numeric_limits<float>::quiet_NaN();
  for (const Nodes& nodes : support::placements()) {
    comm::run_as_threads(nodes, [&](comm::Transport& world) {
      HostSynchronizer synchronizer{world, slots, options_for(OptimizerKind::sgd)};
      const auto first_of_node = std::find(nodes.begin(), nodes.end(), nodes[static_cast<std::size_t>(world.rank())]);
      const auto arena = synchronizer.parameters();
      if (world.rank() == 0)
        std::copy(initial.begin(), initial.end(), arena.begin());
      else if (first_of_node - nodes.begin() == world.rank())
        std::fill(arena.begin(), arena.end(), 3.0F);
      synchronizer.start({});
      EXPECT_EQ(std::memcmp(arena.data(), initial.data(), arena.size_bytes()), 0) << support::describe(nodes);
    });
  }
}

TEST(HostSynchronizer, MessagesTravelBeforeTheStep) {
  const auto slots = support::odd_slots();
  comm::run_as_threads({0, 1}, [&](comm::Transport& world) {
    HostSynchronizer synchronizer{world, slots, options_for(OptimizerKind::sgd)};
    synchronizer.start({});
    const auto gradients = synchronizer.gradients();
    support::fill(slots, gradients, [&](std::size_t) { return static_cast<float>(1 + world.rank()); });
    for (std::uint64_t looks = 0; gradients[0] != 3; ++looks) {  // until the other node's values have been added
      synchronizer.ready(0);
      world.relax(looks);
    }
    EXPECT_EQ(gradients[slots.back().slice.offset], static_cast<float>(1 + world.rank()));  // not reported as complete
    synchronizer.step({.learning_rate = 1});
    EXPECT_EQ(synchronizer.parameters()[slots.back().slice.offset], -3);
  });
}

TEST(HostSynchronizer, CountsTheTimeSpentWaiting) {
  for (const Nodes& nodes : {Nodes{0, 0}, Nodes{0, 1}}) {
    comm::run_as_threads(nodes, [&](comm::Transport& world) {
      HostSynchronizer synchronizer{world, support::odd_slots(), options_for(OptimizerKind::sgd)};
      synchronizer.start({});
      const double before = synchronizer.waited().value;
      if (world.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds{300});
      synchronizer.step({.learning_rate = 1});
      if (world.rank() == 0) {
        EXPECT_GE(synchronizer.waited().value - before, 0.04);
      }
    });
  }
}

/// What ranks save of a run, by tensor and state, each in the order of the arena.
using Kept = std::map<std::pair<std::size_t, std::string>, std::vector<float>>;

/// Two layers in blocks, and a bias.
std::vector<Slot> layers_in_blocks() {
  std::vector<Slot> slots = support::make_slots({64 * 96, 48, 5 * 1'600});
  slots[0].block = 16 * 96;
  slots[2].block = 1'600;
  return slots;
}

/// The sum of gradients is the same for any ranks.
void make_step(HostSynchronizer& synchronizer, int rank, int number) {
  support::fill(synchronizer.sharding().slots(), synchronizer.gradients(),
                [&](std::size_t i) { return rank == 0 ? support::small_integer(i, 0, number) : 0.0F; });
  synchronizer.step({.learning_rate = 0.25});
}

/// How one rank halts a step.
struct Halt {
  int by_rank = 0;
  float gradient = 1;  ///< of that rank; it calls halt() only if this is finite
  double clip_norm = 0;
};

void expect_halt(const Nodes& nodes, const Halt& halt) {
  SCOPED_TRACE(support::describe(nodes));
  const std::vector<Slot> slots = support::odd_slots();
  SynchronizerOptions options = options_for(OptimizerKind::sgd);
  options.optimizer.momentum = 0.5;
  comm::run_as_threads(nodes, [&](comm::Transport& world) {
    HostSynchronizer synchronizer{world, slots, options};
    synchronizer.start({});
    const auto make_step = [&](float gradient) {
      support::fill(slots, synchronizer.gradients(), [&](std::size_t) { return gradient; });
      synchronizer.step({.learning_rate = 1}, halt.clip_norm);
    };
    const auto parameters = [&] {
      return std::vector<float>{synchronizer.parameters().begin(), synchronizer.parameters().end()};
    };
    make_step(1);
    const std::vector<float> before = parameters();
    const bool is_culprit = world.rank() == halt.by_rank;
    if (is_culprit && std::isfinite(halt.gradient)) synchronizer.halt();
    make_step(is_culprit ? halt.gradient : 1);
    EXPECT_EQ(parameters(), before);
    make_step(1);
    EXPECT_EQ(parameters(), before) << "it does not end by itself";
    synchronizer.start({});
    make_step(1);
    EXPECT_NE(parameters(), before);
    EXPECT_FALSE(synchronizer.guard().has_changed());
  });
}

TEST(HostSynchronizer, NobodyUpdatesOnceOneRankHalts) {
  for (const Nodes& nodes : support::placements())
    for (const int by_rank : {0, static_cast<int>(nodes.size()) - 1})
      for (const double clip_norm : {0.0, 1e9}) expect_halt(nodes, {.by_rank = by_rank, .clip_norm = clip_norm});
}

TEST(HostSynchronizer, ANormThatIsNotFiniteHalts) {
  for (const Nodes& nodes : support::placements())
    expect_halt(nodes, {.gradient = std::numeric_limits<float>::infinity(), .clip_norm = 1e9});
}

// Values visited with one division are complete: restored with another one, the run continues with the same bits.
TEST(HostSynchronizer, WhatIsVisitedIsAllThatARunNeeds) {
  SynchronizerOptions options = options_for(OptimizerKind::sgd);
  options.optimizer.momentum = 0.5;
  const std::vector<Slot> slots = layers_in_blocks();
  for (const Nodes& from : {Nodes{0}, Nodes{0, 0, 0}, Nodes{0, 0, 1, 1}}) {
    Kept kept;
    std::vector<float> expected;
    std::atomic<std::size_t> n_read = 0;
    std::mutex mutex;
    comm::run_as_threads(from, [&](comm::Transport& world) {
      HostSynchronizer synchronizer{world, slots, options};
      synchronizer.start({});
      for (int step = 0; step < 2; ++step) make_step(synchronizer, world.rank(), step);
      synchronizer.visit(Access::own, [&](const StoredPiece& piece) {
        EXPECT_EQ(from[static_cast<std::size_t>(world.rank())], 0) << "one node saves";
        const core::Slice& slot = slots[piece.slot].slice;
        EXPECT_EQ((piece.slice.offset - slot.offset) % slots[piece.slot].block, 0U);
        const std::scoped_lock lock{mutex};
        auto& values = kept[{piece.slot, std::string{piece.state}}];
        values.resize(slot.count, std::numeric_limits<float>::quiet_NaN());
        std::ranges::copy(piece.values, piece.slice.seen_from(slot.offset).of(std::span{values}).begin());
      });
      synchronizer.visit(Access::own_parameters, [&](const StoredPiece& piece) {
        EXPECT_EQ(from[static_cast<std::size_t>(world.rank())], 0) << "one node reads";
        EXPECT_EQ(piece.state, "parameter");
        EXPECT_EQ(piece.values.data(), piece.slice.of(synchronizer.parameters()).data());
        n_read += piece.slice.count;
      });
      make_step(synchronizer, world.rank(), 2);
      if (world.rank() == 0) expected.assign(synchronizer.parameters().begin(), synchronizer.parameters().end());
    });
    ASSERT_EQ(kept.size(), 2 * slots.size());
    for (const Slot& slot : slots) n_read -= slot.slice.count;
    EXPECT_EQ(n_read, 0u);
    for (const Nodes& to : {Nodes{0, 0}, Nodes{0, 1, 1}}) {
      SCOPED_TRACE(support::describe(from) + ", then " + support::describe(to));
      comm::run_as_threads(to, [&](comm::Transport& world) {
        HostSynchronizer synchronizer{world, slots, options};
        synchronizer.visit(Access::kept, [&](const StoredPiece& piece) {
          const std::span<const float> values{kept.at({piece.slot, std::string{piece.state}})};
          std::ranges::copy(piece.slice.seen_from(slots[piece.slot].slice.offset).of(values), piece.values.begin());
        });
        synchronizer.start({});
        make_step(synchronizer, world.rank(), 2);
        EXPECT_EQ(support::distance_in_ulp(synchronizer.parameters(), expected), 0);
      });
    }
  }
}

// A host skips no step, so each one is an update of a run that began on a GPU.
TEST(HostSynchronizer, CountsEachStepAsAnUpdateOfALossThatWasScaled) {
  comm::run_as_threads({0, 1}, [&](comm::Transport& world) {
    HostSynchronizer synchronizer{world, support::odd_slots(), options_for(OptimizerKind::adam)};
    EXPECT_FALSE(synchronizer.scale_to_save());
    synchronizer.start({.n_steps = 9, .scale = optim::LossScale{.value = 64, .n_good = 2, .n_updates = 7}});
    for (int step = 0; step < 2; ++step) make_step(synchronizer, world.rank(), step);
    const auto scale = synchronizer.scale_to_save();
    EXPECT_EQ(scale ? scale->n_updates : 0, 9u);
    EXPECT_EQ(scale ? scale->value : 0, 64);
  });
}

}  // namespace
}  // namespace lockstep::parallel
