// Strategies on made-up GPUs over real ranks, with a library of the host in NCCL's place: collectives are only
// enqueued, also in a recorded step, and use memory that is registered.
#include <gtest/gtest.h>

#include "comm/registry.hpp"
#include "comm/transport.hpp"
#include "support/mpi_main.hpp"
#include "support/recorder.hpp"
#include "unit/parallel/device_ranks.hpp"

namespace lockstep {
namespace {

using core::DType;
using optim::OptimizerKind;
using parallel::Strategy;
using support::DeviceRank;
using support::Setting;
using support::Tensors;

class StrategiesByTheLibrary : public testing::Test {
 protected:
  void TearDown() override {
    for (const std::string& complaint : recorder_.complaints()) ADD_FAILURE() << complaint;
  }

  [[nodiscard]] std::unique_ptr<comm::DeviceGroup> make_group() {
    if (over_->n_ranks() == 1) return nullptr;
    const comm::Algorithm& row = *comm::find_algorithm("nccl");
    return row.group(row, *over_);
  }

  /// Collective: what passes of this rank read after some steps.
  Tensors after_steps(const Setting& setting) {
    DeviceRank rank{*over_, setting, make_group()};
    for (int step = 0; step < 3; ++step) rank.step(step);
    EXPECT_FALSE(rank.synchronizer().guard().has_changed());
    return rank.read_by_passes();
  }

  std::unique_ptr<comm::Transport> over_ = comm::make_transport(support::world(), {.oversubscribed = true});
  test::Recorder recorder_;
  test::UseRecorder use_{recorder_};
};

std::vector<Setting> settings_of(int n_ranks) {
  std::vector<Setting> all;
  for (const OptimizerKind optimizer :
       {OptimizerKind::sgd, OptimizerKind::adam, OptimizerKind::lamb, OptimizerKind::lars})
    for (const DType weights : {DType::float32, DType::bfloat16, DType::float16})
      all.push_back({.n_ranks = n_ranks,
                     .optimizer = optimizer,
                     .clip_norm = all.size() % 2 == 0 ? 0.0 : 2.0,
                     .weights = weights,
                     .has_even_parts = all.size() % 3 != 0,
                     .overflows_at = weights == DType::float16 ? 1 : -1});
  return all;
}

// What passes read has the precision of weights, which a difference in the last bit of a sum seldom changes.
TEST_F(StrategiesByTheLibrary, GiveTheParametersOfDdpAlsoRecorded) {
  for (Setting setting : settings_of(over_->n_ranks())) {
    SCOPED_TRACE(setting.text());
    setting.strategy = Strategy::ddp;
    const Tensors expected = after_steps(setting);
    setting.strategy = Strategy::zero1;
    const Tensors enqueued = after_steps(setting);
    setting.is_recorded = true;
    const Tensors recorded = after_steps(setting);
    EXPECT_EQ(recorded, enqueued);
    const double of_weight = setting.weights == DType::bfloat16  ? 65'536
                             : setting.weights == DType::float16 ? 8'192
                                                                 : 1;
    support::expect_within(support::tolerance_of(setting) * of_weight, enqueued, expected);
    if (HasFailure()) return;
  }
}

TEST_F(StrategiesByTheLibrary, OnlyEnqueueASteadyStep) {
  const Setting setting{
      .n_ranks = over_->n_ranks(), .optimizer = OptimizerKind::lamb, .weights = DType::bfloat16, .guard_interval = 0};
  DeviceRank rank{*over_, setting, make_group()};
  rank.step(0);
  runtime::Stream stream;
  const int n_allocations = recorder_.n_allocations(), n_waits = recorder_.n_host_waits();
  for (std::size_t slot = 0; slot < rank.slots().size(); ++slot) rank.synchronizer().ready(slot, stream);
  rank.synchronizer().step({.learning_rate = 0.25}, 1, stream);
  EXPECT_EQ(recorder_.n_allocations(), n_allocations);
  EXPECT_EQ(recorder_.n_host_waits(), n_waits);
  stream.wait();
}

TEST_F(StrategiesByTheLibrary, RegisterAllThatTheyExchange) {
  if (over_->n_ranks() == 1) return;
  for (const Strategy strategy : parallel::strategies_on(true)) {
    const Setting setting{.strategy = strategy, .n_ranks = over_->n_ranks(), .optimizer = OptimizerKind::lars};
    DeviceRank rank{*over_, setting, make_group()};
    EXPECT_EQ(rank.synchronizer().is_registered(), !comm::registration_obstacle(comm::Registration::local));
    rank.step(0);
  }
}

}  // namespace
}  // namespace lockstep
