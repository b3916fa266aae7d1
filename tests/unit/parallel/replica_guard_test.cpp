#include "parallel/replica_guard.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <optional>
#include <string>
#include <vector>

#include "comm/transport_threads.hpp"
#include "core/error.hpp"
#include "core/sum_hash.hpp"
#include "parallel/control_word.hpp"
#include "parallel/host_synchronizer.hpp"
#include "parallel/sharding.hpp"
#include "unit/parallel/ranks.hpp"

namespace lockstep::parallel {
namespace {

using support::Nodes;

/// Where and after which step one bit is flipped.
struct Flip {
  int by_rank = 0;
  int after_step = 0;
  std::size_t slot = 0;
  std::size_t element = 0;  ///< within the slot
  int bit = 0;
};

SynchronizerOptions make_options(std::uint64_t guard_interval) {
  SynchronizerOptions options;
  options.buckets = {{support::small_bucket_bytes}, {1'024}, {1'024}};
  options.guard_interval = guard_interval;
  return options;
}

void flip(std::span<float> parameters, std::size_t element, int bit) {
  parameters[element] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(parameters[element]) ^ (1U << bit));
}

/// One rank's loop, as in the trainer: six steps, each agreed on one step late.
void train(comm::Transport& world, std::uint64_t guard_interval, const std::optional<Flip>& fault) {
  const auto slots = support::odd_slots();
  HostSynchronizer synchronizer{world, slots, make_options(guard_interval)};
  ControlWord word{world, false};
  const auto act_on = [&](const std::optional<StepAgreement>& agreement) {
    if (!agreement) return;
    if (agreement->changed) synchronizer.guard().fail_for_change();
    if (!agreement->replicas_agree) synchronizer.guard().fail_for_replicas();
  };
  if (world.rank() == 0)
    support::fill(slots, synchronizer.parameters(), [](std::size_t i) { return support::odd_value(i, 0, 0); });
  synchronizer.start({});
  for (int step = 0; step < 6; ++step) {
    support::fill(slots, synchronizer.gradients(),
                  [&](std::size_t i) { return support::odd_value(i, world.rank(), step); });
    synchronizer.step({.learning_rate = 1e-3});
    if (fault && fault->by_rank == world.rank() && fault->after_step == step)
      flip(synchronizer.parameters(), slots[fault->slot].slice.offset + fault->element, fault->bit);
    act_on(
        word.exchange({.changed = synchronizer.guard().has_changed(), .replica = synchronizer.guard().replica_hash()}));
  }
  act_on(word.finish());
}

/// The error that ends the run, if there is one.
std::optional<core::Error> run(const Nodes& nodes, std::uint64_t guard_interval, const std::optional<Flip>& fault) {
  return core::complaint_of(
      [&] { comm::run_as_threads(nodes, [&](comm::Transport& world) { train(world, guard_interval, fault); }); });
}

TEST(ReplicaGuard, SaysNothingWhereNothingIsWrong) {
  for (const Nodes& nodes : support::placements())
    for (const std::uint64_t guard_interval : {0, 1, 2}) {
      const auto error = run(nodes, guard_interval, std::nullopt);
      EXPECT_FALSE(error) << support::describe(nodes) << ": " << error->what();
    }
}

/// The local rank whose slice holds `element`, on a node of `n_owners`.
std::size_t owner_of(std::size_t element, std::size_t n_owners) {
  const auto slots = support::odd_slots();
  const Sharding sharding{slots, plan_buckets(slots, make_options(1).buckets), n_owners};
  for (std::size_t owner = 0; owner < n_owners; ++owner)
    for (const core::Slice& slice : sharding.slices_of(owner))
      if (slice.offset <= element && element < slice.end()) return owner;
  return n_owners;
}

TEST(ReplicaGuard, NamesTheTensorAndItsOwner) {
  const auto slots = support::odd_slots();
  for (const std::size_t element : {0, 5'000, 9'998}) {
    for (int n_ranks = 1; n_ranks <= 4; ++n_ranks) {
      const auto error = run(Nodes(static_cast<std::size_t>(n_ranks)), 1,
                             Flip{.by_rank = n_ranks - 1, .after_step = 2, .slot = 4, .element = element, .bit = 3});
      ASSERT_TRUE(error);
      EXPECT_EQ(error->code(), core::ExitCode::failed);
      EXPECT_NE(error->problem().what.find("'t4'"), std::string::npos) << error->what();
      EXPECT_EQ(error->problem().where, fmt::format("rank {} on node 0", owner_of(slots[4].slice.offset + element,
                                                                                  static_cast<std::size_t>(n_ranks))));
    }
  }
}

TEST(ReplicaGuard, AnyBitOfAnyTensorIsNoticed) {
  const auto slots = support::odd_slots();
  for (std::size_t slot = 0; slot < slots.size(); ++slot) {
    if (slots[slot].slice.count == 0) continue;
    const Flip fault{
        .after_step = 1, .slot = slot, .element = slots[slot].slice.count - 1, .bit = static_cast<int>(slot * 3)};
    const auto error = run({0, 0}, 1, fault);
    ASSERT_TRUE(error);
    EXPECT_NE(error->problem().what.find(fmt::format("'t{}'", slot)), std::string::npos) << error->what();
  }
}

// The guard does not look after step 2, so only the other nodes can tell, when it looks after step 4.
TEST(ReplicaGuard, NamesTheNodeThatDiffersFromMost) {
  for (const int rank : {0, 1, 2}) {
    const auto error = run({0, 1, 2}, 2, Flip{.by_rank = rank, .after_step = 2, .slot = 4, .element = 17, .bit = 20});
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), core::ExitCode::failed);
    EXPECT_NE(error->problem().what.find("'t4'"), std::string::npos) << error->what();
    EXPECT_EQ(error->problem().where, fmt::format("rank {} on node {}", rank, rank));
  }
  const auto error =
      run({0, 0, 1, 1, 2, 2}, 2, Flip{.by_rank = 2, .after_step = 2, .slot = 7, .element = 3'300, .bit = 20});
  ASSERT_TRUE(error);
  EXPECT_NE(error->problem().what.find("'t7'"), std::string::npos) << error->what();
  EXPECT_NE(error->problem().where.find("on node 1"), std::string::npos) << error->what();
}

// The effect of --inject with a parameter and a rank: the message names the same rank.
TEST(ReplicaGuard, NamesTheRankThatADrillNames) {
  for (const int by_rank : {0, 1, 2}) {
    std::vector<std::string> found(3);
    comm::run_as_threads({0, 0, 0}, [&](comm::Transport& world) {
      HostSynchronizer synchronizer{world, support::odd_slots(), make_options(1)};
      synchronizer.start({});
      if (world.rank() == by_rank) {
        EXPECT_TRUE(synchronizer.flip_bit(4));
      }
      synchronizer.step({.learning_rate = 1e-3});
      const auto error = core::complaint_of([&] { synchronizer.guard().fail_for_change(); });
      if (error) found[static_cast<std::size_t>(world.rank())] = error->problem().what;
    });
    for (int rank = 0; rank < 3; ++rank)
      EXPECT_EQ(found[static_cast<std::size_t>(rank)].find("'t4'") != std::string::npos, rank == by_rank) << rank;
  }
}

TEST(ReplicaGuard, AllRanksFailAlikeWhereReplicasDiffer) {
  const auto slots = support::make_slots({100, 5'000});
  std::vector<std::string> messages(4);
  comm::run_as_threads({0, 0, 1, 1}, [&](comm::Transport& world) {
    HostSynchronizer synchronizer{world, slots, make_options(2)};
    synchronizer.start({});
    synchronizer.step({.learning_rate = 0});
    if (world.rank() == 3) flip(synchronizer.parameters(), slots[1].slice.offset + 4'000, 30);
    synchronizer.step({.learning_rate = 0});  // with a rate of 0 the bit stays
    const auto error = core::complaint_of([&] { synchronizer.guard().fail_for_replicas(); });
    messages[static_cast<std::size_t>(world.rank())] = error->what();
  });
  EXPECT_NE(messages.front().find("'t1'"), std::string::npos) << messages.front();
  for (const std::string& message : messages) EXPECT_EQ(message, messages.front());
}

// On one node the next step verifies a record; several nodes only compare records.
TEST(ReplicaGuard, KnowsUpToWhichStepParametersAreSound) {
  const auto slots = support::make_slots({16});
  for (const Nodes& nodes : {Nodes{0}, Nodes{0, 1}}) {
    comm::run_as_threads(nodes, [&](comm::Transport& world) {
      std::vector<float> parameters(16);
      const auto hash = [&](const Piece& piece) {
        return core::sum_hash(piece.slice.offset, piece.slice.of(std::span<const float>{parameters}));
      };
      ReplicaGuard guard{slots, {{0, {0, 16}}}, {}, world, world, 2};
      const bool is_alone = world.n_ranks() == 1;
      const auto step_to = [&](std::uint64_t n_steps) {
        guard.verify(hash);
        const bool is_due = guard.count_step(n_steps);
        EXPECT_EQ(is_due, n_steps % 2 == 0);
        if (is_due) guard.record(hash);
      };
      EXPECT_TRUE(guard.restart(3));
      guard.record(hash);
      EXPECT_EQ(guard.n_sound_steps(), 3U);
      step_to(4);
      EXPECT_EQ(guard.n_sound_steps(), 3U);
      step_to(5);
      EXPECT_EQ(guard.n_sound_steps(), is_alone ? 5U : 3U);
      step_to(6);
      EXPECT_EQ(guard.n_sound_steps(), is_alone ? 5U : 4U);
      parameters[3] = 1;
      guard.verify(hash);
      EXPECT_TRUE(guard.has_changed());
      EXPECT_EQ(guard.n_sound_steps(), is_alone ? 5U : 4U);
      EXPECT_FALSE(guard.count_step(8)) << "what changed is not recorded";
      EXPECT_TRUE(guard.restart(2));
      EXPECT_FALSE(guard.has_changed());
      EXPECT_EQ(guard.n_sound_steps(), 2U);
    });
  }
}

}  // namespace
}  // namespace lockstep::parallel
