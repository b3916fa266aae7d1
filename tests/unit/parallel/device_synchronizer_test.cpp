// The synchronizer of devices beside that of the host; a recorder simulates devices, and threads are ranks.
#include "parallel/device_synchronizer.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <mutex>

#include "comm/transport_threads.hpp"
#include "parallel/host_synchronizer.hpp"
#include "support/recorder.hpp"
#include "unit/parallel/ranks.hpp"

namespace lockstep::parallel {
namespace {

using optim::OptimizerKind;
using support::Nodes;

using Arrays = std::map<std::string, std::vector<float>>;

struct Course {
  SynchronizerOptions options{};
  double clip_norm = 0;
  std::vector<Slot> slots = support::odd_slots();
  int n_steps = 4;
};

Course course_of(OptimizerKind kind, double clip_norm = 0) {
  Course course{.options = {.optimizer = optim::default_spec(kind)}, .clip_norm = clip_norm};
  course.options.optimizer.momentum = kind == OptimizerKind::sgd ? 0.5 : 0.9;
  course.options.buckets = {{support::small_bucket_bytes}, {1'024}, {1'024}};
  course.options.guard_interval = 2;
  for (Slot& slot : course.slots) slot.slice.count = (slot.slice.count + 15) / 16 * 16;  // with its padding
  return course;
}

// Everything that a rank has; padding has the initial value, 0.
Arrays arrays_of(Synchronizer& synchronizer) {
  Arrays all;
  synchronizer.visit(Access::kept, [&](const StoredPiece& piece) {
    auto& array = all[std::string{piece.state} + "/" + synchronizer.sharding().slots()[piece.slot].name];
    array.insert(array.end(), piece.values.begin(), piece.values.end());
  });
  return all;
}

/// Puts the piece of one rank to those of others, and checks that no other rank has it.
void add_to(Arrays& all, const Slot& slot, const StoredPiece& piece) {
  auto& array = all[std::string{piece.state} + "/" + slot.name];
  array.resize(slot.slice.count, std::numeric_limits<float>::quiet_NaN());
  const std::span<float> values = piece.slice.seen_from(slot.slice.offset).of(std::span{array});
  EXPECT_TRUE(std::ranges::all_of(values, [](float value) { return std::isnan(value); })) << slot.name;
  std::ranges::copy(piece.values, values.begin());
}

core::StepNumbers numbers_of(int step) {
  return {.learning_rate = 0.25, .scale = 4, .step = static_cast<std::uint64_t>(step)};
}

Arrays on_host(const Course& course, int n_ranks) {
  Arrays result;
  comm::run_as_threads(Nodes{0}, [&](comm::Transport& world) {
    HostSynchronizer synchronizer{world, course.slots, course.options};
    support::fill(course.slots, synchronizer.parameters(), [](auto i) { return support::small_integer(i, 0, 77); });
    synchronizer.start({});
    for (int step = 0; step < course.n_steps; ++step) {
      support::fill(course.slots, synchronizer.gradients(), [&](auto i) {
        float sum = 0;
        for (int rank = 0; rank < n_ranks; ++rank) sum += support::small_integer(i, rank, step);
        return sum;
      });
      synchronizer.step(numbers_of(step), course.clip_norm);
    }
    result = arrays_of(synchronizer);
  });
  return result;
}

class OnDevices : public testing::TestWithParam<Nodes> {
 protected:
  void SetUp() override { use_ = std::make_unique<test::UseRecorder>(recorder_); }
  void TearDown() override {
    use_.reset();
    for (const std::string& complaint : recorder_.complaints()) ADD_FAILURE() << complaint;
  }

  using Work = std::function<void(comm::Transport& world, DeviceSynchronizer& synchronizer)>;
  void as_ranks(const Course& course, const Work& work) {
    comm::run_as_threads(GetParam(), [&](comm::Transport& world) {
      const auto devices = world.n_ranks() > 1 ? comm::make_staged(world) : nullptr;
      DeviceSynchronizer synchronizer{world, devices.get(), course.slots, course.options};
      support::set_parameters(synchronizer, [](auto i) { return support::small_integer(i, 0, 77); });
      synchronizer.start({});
      work(world, synchronizer);
    });
  }

  static void make_step(comm::Transport& world, const Course& course, DeviceSynchronizer& synchronizer, int step,
                        runtime::Stream& stream, float at_first_element = 0) {
    std::vector<float> gradient(arena_elements(course.slots));
    support::fill(course.slots, gradient, [&](auto i) { return support::small_integer(i, world.rank(), step); });
    gradient[0] += at_first_element;
    runtime::Staging{}.send(std::as_bytes(std::span{gradient}),
                            runtime::as_writable_bytes(synchronizer.arenas().gradients));
    for (std::size_t slot = 0; slot < course.slots.size(); ++slot) synchronizer.ready(slot, stream);
    synchronizer.step(numbers_of(step), course.clip_norm, stream);
    stream.wait();
  }

  test::Recorder recorder_;
  std::unique_ptr<test::UseRecorder> use_;
};

TEST_P(OnDevices, EveryOptimizerGivesTheHostsBits) {
  const auto n_ranks = static_cast<int>(GetParam().size());
  for (const OptimizerKind kind : optim::all_optimizer_kinds) {
    SCOPED_TRACE(optim::name(kind));
    const Course course = course_of(kind);
    use_.reset();
    const Arrays expected = on_host(course, n_ranks);
    use_ = std::make_unique<test::UseRecorder>(recorder_);
    // Norms of whole tensors are summed in another order.
    const double tolerance_ulp = kind == OptimizerKind::lars || kind == OptimizerKind::lamb ? 2 : 0;
    as_ranks(course, [&](comm::Transport& world, DeviceSynchronizer& synchronizer) {
      runtime::Stream stream;
      for (int step = 0; step < course.n_steps; ++step) make_step(world, course, synchronizer, step, stream);
      Arrays of_slots;
      for (std::size_t slot = 0; slot < course.slots.size(); ++slot) {
        const auto values = synchronizer.read(slot);
        EXPECT_EQ(values.size(), world.rank() == 0 ? course.slots[slot].slice.count : 0) << "rank 0 has it";
        if (!values.empty()) of_slots["parameter/" + course.slots[slot].name].assign(values.begin(), values.end());
      }
      const Arrays found = arrays_of(synchronizer);
      for (const auto& [name, values] : of_slots) EXPECT_EQ(values, found.at(name)) << name;
      ASSERT_EQ(found.size(), expected.size());
      for (const auto& [name, values] : expected)
        EXPECT_LE(support::distance_in_ulp(found.at(name), values), tolerance_ulp) << name;
      EXPECT_EQ(synchronizer.guard().replica_hash().has_value(), world.n_ranks() > 1);
    });
  }
}

TEST_P(OnDevices, ClipsByTheNormOfTheSum) {
  const Course course = course_of(OptimizerKind::sgd, 0.5);
  use_.reset();
  const Arrays expected = on_host(course, static_cast<int>(GetParam().size()));
  use_ = std::make_unique<test::UseRecorder>(recorder_);
  as_ranks(course, [&](comm::Transport& world, DeviceSynchronizer& synchronizer) {
    runtime::Stream stream;
    for (int step = 0; step < course.n_steps; ++step) make_step(world, course, synchronizer, step, stream);
    EXPECT_GT(synchronizer.norm(StepBack::last), 0.5);
    const Arrays found = arrays_of(synchronizer);
    for (const auto& [name, values] : expected) EXPECT_LE(support::distance_in_ulp(found.at(name), values), 2) << name;
  });
}

TEST_P(OnDevices, AStepThatIsNotFiniteLeavesAllAsItWas) {
  const Course course = course_of(OptimizerKind::adam);
  as_ranks(course, [&](comm::Transport& world, DeviceSynchronizer& synchronizer) {
    runtime::Stream stream;
    const runtime::Buffer statistics{core::Bytes{64}, runtime::Memory::device};
    const runtime::Buffer kept{core::Bytes{64}, runtime::Memory::device};
    synchronizer.keep_statistics(statistics.on_device<float>(), kept.on_device<float>());
    const auto statistic = [&](std::optional<float> value) {
      std::vector<float> values(16, value.value_or(0));
      if (value) runtime::Staging{}.send(std::as_bytes(std::span{values}), statistics.on_device<std::byte>());
      runtime::Staging{}.fetch(runtime::as_bytes(statistics.on_device<float>()),
                               std::as_writable_bytes(std::span{values}));
      return values[7];
    };
    statistic(1);
    make_step(world, course, synchronizer, 0, stream);
    const Arrays before = arrays_of(synchronizer);
    const float infinity = std::numeric_limits<float>::infinity();
    statistic(2);
    make_step(world, course, synchronizer, 1, stream, world.rank() == world.n_ranks() - 1 ? infinity : 0);
    EXPECT_FALSE(std::isfinite(synchronizer.norm(StepBack::last)));
    EXPECT_EQ(statistic({}), 1);
    make_step(world, course, synchronizer, 2, stream);  // only now known to the host
    EXPECT_FALSE(std::isfinite(synchronizer.norm(StepBack::before_last)));
    EXPECT_EQ(arrays_of(synchronizer), before);
    synchronizer.start({.n_steps = 1});
    make_step(world, course, synchronizer, 1, stream);
    EXPECT_TRUE(std::isfinite(synchronizer.norm(StepBack::last)));
    EXPECT_NE(arrays_of(synchronizer), before);
  });
}

TEST_P(OnDevices, ValuesOfOwnersReachAllRanks) {
  const Course course = course_of(OptimizerKind::adam);
  as_ranks(course, [&](comm::Transport&, DeviceSynchronizer& synchronizer) {
    synchronizer.visit(Access::own, [&](const StoredPiece& piece) {
      if (piece.state != "parameter") return;
      for (std::size_t i = 0; i < piece.values.size(); ++i)
        piece.values[i] = support::odd_value(piece.slice.offset + i, 0, 5);
    });
    synchronizer.start({});
    std::vector<float> found(arena_elements(course.slots)), expected(found.size());
    support::fill(course.slots, expected, [](std::size_t i) { return support::odd_value(i, 0, 5); });
    runtime::Staging{}.fetch(runtime::as_bytes(synchronizer.arenas().parameters),
                             std::as_writable_bytes(std::span{found}));
    EXPECT_EQ(found, expected);
  });
}

TEST_P(OnDevices, RanksTogetherReadEachParameterOnce) {
  const Course course = course_of(OptimizerKind::adam);
  Arrays read, expected;
  std::mutex mutex;
  as_ranks(course, [&](comm::Transport& world, DeviceSynchronizer& synchronizer) {
    runtime::Stream stream;
    for (int step = 0; step < 2; ++step) make_step(world, course, synchronizer, step, stream);
    const std::scoped_lock lock{mutex};
    synchronizer.visit(Access::own_parameters, [&](const StoredPiece& piece) {
      EXPECT_EQ(piece.state, "parameter");
      add_to(read, course.slots[piece.slot], piece);
    });
    if (world.rank() == 0) expected = arrays_of(synchronizer);
  });
  std::erase_if(expected, [](const auto& array) { return !array.first.starts_with("parameter/"); });
  EXPECT_EQ(read, expected);
}

// Each rank saves what it owns, and loads everything.
TEST_P(OnDevices, GoesOnFromWhatWasVisited) {
  const Course course = course_of(OptimizerKind::adamw);
  Arrays kept, expected;
  std::mutex mutex;
  as_ranks(course, [&](comm::Transport& world, DeviceSynchronizer& synchronizer) {
    runtime::Stream stream;
    for (int step = 0; step < 4; ++step) {
      make_step(world, course, synchronizer, step, stream);
      if (step != 1) continue;
      const std::scoped_lock lock{mutex};
      std::size_t n_own = 0;
      synchronizer.visit(Access::own, [&](const StoredPiece& piece) {
        add_to(kept, course.slots[piece.slot], piece);
        n_own += piece.values.size();
      });
      EXPECT_GT(n_own, 0u) << world.rank();
    }
    if (world.rank() == 0) expected = arrays_of(synchronizer);
  });
  as_ranks(course, [&](comm::Transport& world, DeviceSynchronizer& synchronizer) {
    synchronizer.visit(Access::kept, [&](const StoredPiece& piece) {
      std::ranges::copy(kept.at(std::string{piece.state} + "/" + synchronizer.sharding().slots()[piece.slot].name),
                        piece.values.begin());
    });
    synchronizer.start({.n_steps = 2});
    runtime::Stream stream;
    for (int step = 2; step < 4; ++step) make_step(world, course, synchronizer, step, stream);
    EXPECT_EQ(arrays_of(synchronizer), expected);
  });
}

// A skipped step counts as a step of the run, but not of Adam.
TEST_P(OnDevices, GoesOnWithTheScaleOfItsLoss) {
  Course course = course_of(OptimizerKind::adam);
  course.options.scales_loss = true;
  const auto step_of = [&](comm::Transport& world, DeviceSynchronizer& synchronizer, int step,
                           runtime::Stream& stream) {
    make_step(world, course, synchronizer, step, stream, step == 1 ? std::numeric_limits<float>::infinity() : 0);
  };
  Arrays kept, expected;
  std::optional<optim::LossScale> kept_scale, expected_scale;
  as_ranks(course, [&](comm::Transport& world, DeviceSynchronizer& synchronizer) {
    runtime::Stream stream;
    for (int step = 0; step < 5; ++step) {
      step_of(world, synchronizer, step, stream);
      const auto scale = synchronizer.scale_to_save();
      if (world.rank() != 0) continue;
      (step < 3 ? kept : expected) = arrays_of(synchronizer);
      (step < 3 ? kept_scale : expected_scale) = scale;
    }
  });
  ASSERT_TRUE(kept_scale && expected_scale);
  EXPECT_EQ(kept_scale->value, 32768);
  EXPECT_EQ(kept_scale->n_good, 1u);
  EXPECT_EQ(kept_scale->n_updates, 2u);
  as_ranks(course, [&](comm::Transport& world, DeviceSynchronizer& synchronizer) {
    synchronizer.visit(Access::kept, [&](const StoredPiece& piece) {
      std::ranges::copy(kept.at(std::string{piece.state} + "/" + synchronizer.sharding().slots()[piece.slot].name),
                        piece.values.begin());
    });
    synchronizer.start({.n_steps = 3, .scale = kept_scale});
    runtime::Stream stream;
    for (int step = 3; step < 5; ++step) step_of(world, synchronizer, step, stream);
    EXPECT_EQ(arrays_of(synchronizer), expected);
    const auto scale = synchronizer.scale_to_save();
    EXPECT_EQ(scale->value, expected_scale->value);
    EXPECT_EQ(scale->n_good, expected_scale->n_good);
    EXPECT_EQ(scale->n_updates, expected_scale->n_updates);
  });
}

// With a rate of 0 the bit stays.
TEST_P(OnDevices, AReplicaThatDiffersIsNamed) {
  constexpr int stray = 1;
  const auto n_ranks = static_cast<int>(GetParam().size());
  if (n_ranks == 1) return;  // one replica
  Course course = course_of(OptimizerKind::sgd);
  course.options.guard_interval = 1;
  for (std::size_t flipped = 0; flipped <= course.slots.size(); ++flipped) {  // the last: none
    if (flipped < course.slots.size() && course.slots[flipped].slice.empty()) continue;
    std::vector<std::uint32_t> hashes(GetParam().size());
    std::vector<std::string> messages(GetParam().size());
    as_ranks(course, [&](comm::Transport& world, DeviceSynchronizer& synchronizer) {
      const auto rank = static_cast<std::size_t>(world.rank());
      runtime::Stream stream;
      if (world.rank() == stray && flipped < course.slots.size()) synchronizer.flip_bit(flipped);
      synchronizer.step({.learning_rate = 0}, 0, stream);
      hashes[rank] = synchronizer.guard().replica_hash().value();
      const auto error = core::complaint_of([&] {
        if (flipped < course.slots.size()) synchronizer.guard().fail_for_replicas();
      });
      if (error) messages[rank] = error->what();
    });
    for (int rank = 0; rank < n_ranks; ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      EXPECT_EQ(hashes[at] != hashes[0], rank == stray && flipped < course.slots.size()) << flipped;
      EXPECT_EQ(messages[at], messages[0]);
    }
    if (flipped == course.slots.size()) continue;
    EXPECT_NE(messages[0].find(fmt::format("'t{}' differ between nodes", flipped)), std::string::npos) << messages[0];
    EXPECT_NE(messages[0].find(fmt::format("rank {} on node {}", stray, GetParam()[stray])), std::string::npos)
        << messages[0];
  }
}

TEST_P(OnDevices, ASteadyStepAllocatesNothing) {
  if (GetParam().size() > 1) GTEST_SKIP() << "threads that are ranks share a recorder";
  Course course = course_of(OptimizerKind::sgd);
  course.options.guard_interval = 0;
  as_ranks(course, [&](comm::Transport&, DeviceSynchronizer& synchronizer) {
    runtime::Stream stream;
    const auto enqueue = [&](int step) {
      for (std::size_t slot = 0; slot < course.slots.size(); ++slot) synchronizer.ready(slot, stream);
      synchronizer.step(numbers_of(step), 0, stream);
    };
    enqueue(0);
    const int n_allocations = recorder_.n_allocations(), n_waits = recorder_.n_host_waits();
    enqueue(1);
    EXPECT_EQ(recorder_.n_allocations(), n_allocations);
    EXPECT_EQ(recorder_.n_host_waits(), n_waits);
    stream.wait();
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, OnDevices, testing::Values(Nodes{0}, Nodes{0, 0}, Nodes{0, 1, 1}, Nodes{0, 0, 1, 1}));

}  // namespace
}  // namespace lockstep::parallel
