// Devices that divide states and the update, beside those that do not: the same parameters, decisions and checkpoints.
// A recorder simulates devices, and threads are ranks.
#include <gtest/gtest.h>

#include "comm/transport_threads.hpp"
#include "support/recorder.hpp"
#include "unit/parallel/device_ranks.hpp"

namespace lockstep::parallel {
namespace {

using core::DType;
using optim::OptimizerKind;
using support::Collected;
using support::DeviceRank;
using support::Setting;
using support::Tensors;

template <class Work>
void run_ranks(const Setting& setting, const Work& work) {
  comm::run_as_threads(support::Nodes(static_cast<std::size_t>(setting.n_ranks), 0), [&](comm::Transport& world) {
    DeviceRank rank{world, setting, world.n_ranks() > 1 ? comm::make_staged(world) : nullptr};
    work(world, rank);
  });
}

Tensors after_steps(const Setting& setting, int n_steps) {
  Collected owned;
  run_ranks(setting, [&](comm::Transport&, DeviceRank& rank) {
    for (int step = 0; step < n_steps; ++step) rank.step(step);
    owned.add(rank);
  });
  return owned.all();
}

class OnDividingDevices : public testing::Test {
 protected:
  void TearDown() override {
    for (const std::string& complaint : recorder_.complaints()) ADD_FAILURE() << complaint;
  }

  test::Recorder recorder_;
  test::UseRecorder use_{recorder_};
};

/// All combinations, each on a number of ranks that takes turns.
std::vector<Setting> all_settings() {
  std::vector<Setting> all;
  for (const OptimizerKind optimizer :
       {OptimizerKind::sgd, OptimizerKind::adam, OptimizerKind::lamb, OptimizerKind::lars})
    for (const double clip_norm : {0.0, 2.0})
      for (const DType weights : {DType::float32, DType::bfloat16, DType::float16})
        all.push_back({.n_ranks = static_cast<int>(1 + (all.size() + all.size() / 4) % 4),
                       .optimizer = optimizer,
                       .clip_norm = clip_norm,
                       .weights = weights,
                       .has_even_parts = all.size() % 3 == 0,
                       .overflows_at = weights == DType::float16 ? 1 : -1});
  return all;
}

TEST_F(OnDividingDevices, GiveTheParametersOfDdp) {
  for (const Setting& setting : all_settings()) {
    SCOPED_TRACE(setting.text());
    Setting of_ddp = setting;
    of_ddp.strategy = Strategy::ddp;
    const int n_steps = setting.overflows_at < 0 ? 2 : 3;
    const Tensors expected = after_steps(of_ddp, n_steps);
    Collected owned;
    run_ranks(setting, [&](comm::Transport& world, DeviceRank& rank) {
      EXPECT_EQ(rank.synchronizer().guard().replica_hash().has_value(), world.n_ranks() > 1);
      for (int step = 0; step < n_steps; ++step) {
        rank.step(step);
        EXPECT_EQ(std::isfinite(rank.synchronizer().norm(StepBack::last)), step != setting.overflows_at);
      }
      EXPECT_FALSE(rank.synchronizer().guard().has_changed());
      owned.add(rank);
    });
    support::expect_within(tolerance_of(setting), owned.all(), expected);
    if (HasFailure()) return;
  }
}

/// Parameters of ranks that have made some steps: of owners, as rank 0 reads them, and as passes of each rank do.
void expect_equal_on_all(const Setting& setting) {
  Collected owned;
  std::vector<Tensors> of_passes(static_cast<std::size_t>(setting.n_ranks));
  Tensors of_reader;
  run_ranks(setting, [&](comm::Transport& world, DeviceRank& rank) {
    for (int step = 0; step < 2; ++step) rank.step(step);
    of_passes[static_cast<std::size_t>(world.rank())] = rank.read_by_passes();
    owned.add(rank, Access::own_parameters);
    for (std::size_t slot = 0; slot < rank.slots().size(); ++slot) {
      const auto values = rank.synchronizer().read(slot);
      EXPECT_EQ(values.size(), world.rank() == 0 ? rank.slots()[slot].slice.count : 0);
      if (world.rank() == 0) of_reader["parameter/" + rank.slots()[slot].name].assign(values.begin(), values.end());
    }
  });
  EXPECT_EQ(of_reader, owned.all());
  for (const Slot& slot : slots_of(setting)) {
    const std::string key = "parameter/" + slot.name;
    std::vector<float> expected;
    for (const float value : owned.all().at(key)) expected.push_back(as_passes_read(setting, slot, value));
    for (const Tensors& of_rank : of_passes) EXPECT_EQ(of_rank.at(key), expected) << key;
  }
}

TEST_F(OnDividingDevices, AllRanksReadWhatOwnersHaveWritten) {
  for (const int n_ranks : {1, 2, 3, 4})
    for (const DType weights : {DType::float32, DType::bfloat16, DType::float16})
      for (const bool has_even_parts : {true, false}) {
        const Setting setting{.n_ranks = n_ranks, .weights = weights, .has_even_parts = has_even_parts};
        SCOPED_TRACE(setting.text());
        expect_equal_on_all(setting);
      }
}

// As a checkpoint is written by owners, and read by all that keep something.
TEST_F(OnDividingDevices, GoOnWithWhatOthersOwned) {
  const std::vector<std::pair<Strategy, int>> runs{
      {Strategy::ddp, 1}, {Strategy::ddp, 3}, {Strategy::zero1, 3}, {Strategy::zero1, 4}};
  std::size_t n_pairs = 0;
  for (const auto& [from, n_from] : runs)
    for (const auto& [to, n_to] : runs) {
      const DType weights = n_pairs++ % 2 == 0 ? DType::float32 : DType::bfloat16;
      const Setting before{.strategy = from, .n_ranks = n_from, .weights = weights};
      const Setting after{.strategy = to, .n_ranks = n_to, .weights = weights, .has_even_parts = n_to != 3};
      SCOPED_TRACE(before.text() + ", then " + after.text());
      const Tensors saved = after_steps(before, 2);
      Collected loaded;
      run_ranks(after, [&](comm::Transport&, DeviceRank& rank) {
        rank.each(Access::kept, [&](const Slot& slot, const StoredPiece& piece) {
          std::vector<float> all = saved.at(fmt::format("{}/{}", piece.state, slot.name));
          std::ranges::copy(piece.slice.seen_from(slot.slice.offset).of(std::span{all}), piece.values.begin());
        });
        rank.synchronizer().start({.n_steps = 2});
        loaded.add(rank);
      });
      EXPECT_EQ(loaded.all(), saved);
    }
}

// Gaps between slots, which no step writes, are 0 on all ranks.
TEST_F(OnDividingDevices, KeepZerosBetweenSlots) {
  run_ranks({.n_ranks = 3}, [&](comm::Transport&, DeviceRank& rank) {
    rank.step(0);
    const auto parameters = rank.synchronizer().arenas().parameters;
    std::vector<float> all(parameters.size());
    runtime::Staging{}.fetch(runtime::as_bytes(parameters), std::as_writable_bytes(std::span{all}));
    for (const Slot& slot : rank.slots()) std::ranges::fill(slot.slice.of(std::span{all}), 0.0F);
    EXPECT_TRUE(std::ranges::all_of(all, [](float value) { return value == 0; }));
  });
}

/// After a step, flips a bit where `is_flipped` says, and makes another step.
template <class Found>
void flip_between_steps(const Setting& setting, const std::string& slot_name, int flipped_rank, const Found& found) {
  run_ranks(setting, [&](comm::Transport& world, DeviceRank& rank) {
    rank.step(0);
    rank.step(1);  // recorded
    const auto slot = std::ranges::find(rank.slots(), slot_name, &Slot::name) - rank.slots().begin();
    const bool has_part = world.rank() == flipped_rank && rank.synchronizer().flip_bit(static_cast<std::size_t>(slot));
    rank.step(2);
    rank.step(3);  // recorded
    found(world, rank.synchronizer().guard(), has_part);
  });
}

TEST_F(OnDividingDevices, AnOwnerFindsWhatChangedBetweenSteps) {
  for (const DType weights : {DType::float32, DType::bfloat16})
    for (const int flipped : {0, 1, 2}) {
      const Setting setting{.n_ranks = 3, .optimizer = OptimizerKind::sgd, .weights = weights, .learning_rate = 0};
      SCOPED_TRACE(setting.text());
      int n_found = 0;
      flip_between_steps(setting, "m2", flipped, [&](comm::Transport& world, const ReplicaGuard& guard, bool has_part) {
        EXPECT_EQ(has_part, world.rank() == flipped) << "m2 is large enough for all";
        EXPECT_EQ(guard.has_changed(), has_part);
        if (!has_part) return;
        ++n_found;
        const auto error = core::complaint_of([&] { guard.fail_for_change(); });
        ASSERT_TRUE(error);
        EXPECT_NE(std::string{error->what()}.find("parameters of 'm2' changed in memory"), std::string::npos)
            << error->what();
      });
      EXPECT_EQ(n_found, 1);
    }
}

// A vector is whole on every rank. In float32 everything is hashed at once, so that the rank itself finds the change.
TEST_F(OnDividingDevices, ReplicasOfVectorsAreCompared) {
  for (const DType weights : {DType::float32, DType::bfloat16}) {
    const Setting setting{.n_ranks = 3, .optimizer = OptimizerKind::sgd, .weights = weights, .learning_rate = 0};
    SCOPED_TRACE(setting.text());
    std::vector<std::uint32_t> hashes(3);
    flip_between_steps(setting, "v1", 1, [&](comm::Transport& world, const ReplicaGuard& guard, bool has_part) {
      EXPECT_EQ(has_part, world.rank() == 1);
      EXPECT_EQ(guard.has_changed(), has_part && weights == DType::float32);
      hashes[static_cast<std::size_t>(world.rank())] = guard.replica_hash().value();
      if (weights == DType::float32) return;
      const auto error = core::complaint_of([&] { guard.fail_for_replicas(); });
      ASSERT_TRUE(error);
      EXPECT_NE(std::string{error->what()}.find("'v1' differ between nodes"), std::string::npos) << error->what();
    });
    EXPECT_EQ(hashes[0], hashes[2]);
    EXPECT_EQ(hashes[0] != hashes[1], weights == DType::bfloat16);
  }
}

}  // namespace
}  // namespace lockstep::parallel
