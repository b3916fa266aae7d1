// `staged` over threads as ranks that share a made-up GPU: the bits of the host's algorithm, in the streams' order.
#include <gtest/gtest.h>

#include <string>

#include "comm/transport_threads.hpp"
#include "runtime/kernel/launch.hpp"
#include "support/device_case.hpp"
#include "support/recorder.hpp"

namespace lockstep {
namespace {

using comm::Call;
using comm::Collective;
using comm::ReduceOp;
using core::DType;
using runtime::Buffer;
using runtime::Memory;
using runtime::Stream;

class OnDevices : public testing::TestWithParam<int> {
 protected:
  int n_ranks() const { return GetParam(); }
  std::vector<int> one_node() const { return std::vector<int>(static_cast<std::size_t>(n_ranks()), 0); }

  void SetUp() override { use_ = std::make_unique<test::UseRecorder>(recorder_); }
  void TearDown() override {
    for (const std::string& complaint : recorder_.complaints()) ADD_FAILURE() << complaint;
  }

  test::Recorder recorder_;
  std::unique_ptr<test::UseRecorder> use_;
};

void compare(comm::Transport& transport, const Call& call, bool in_place, const comm::Algorithm* by = nullptr) {
  const auto host = by != nullptr ? comm::make_plan(*by, transport, call) : comm::make_plan(transport, call);
  const auto group = comm::make_staged(transport, by);
  support::check(transport, {.group = group.get(), .host = host.get(), .call = call, .in_place = in_place});
}

TEST_P(OnDevices, EveryTypeAndOperationHasTheBitsOfTheHost) {
  EXPECT_NO_THROW(comm::run_as_threads(one_node(), [](comm::Transport& transport) {
    for (const Collective collective : comm::all_collectives)
      for (const DType dtype : core::all_dtypes)
        for (const ReduceOp op : comm::all_reduce_ops)
          for (const bool in_place : {false, true})
            if (collective != Collective::all_gather || op == ReduceOp::sum)
              compare(transport, {collective, dtype, op, 517}, in_place);
  }));
}

TEST_P(OnDevices, EveryLengthHasTheBitsOfTheHost) {
  EXPECT_NO_THROW(comm::run_as_threads(one_node(), [](comm::Transport& transport) {
    for (const Collective collective : comm::all_collectives)
      for (const std::size_t n : {0, 1, 3, 1000, 70'001})
        for (const std::size_t grain : {1, 48})
          for (const bool in_place : {false, true})
            compare(transport, {.collective = collective, .n_elements = n, .grain = grain}, in_place);
  }));
}

TEST_P(OnDevices, NodesAndAFixedOrderAreTheHosts) {
  const std::vector<int> nodes = comm::one_rank_each(n_ranks());
  EXPECT_NO_THROW(comm::run_as_threads(nodes, [](comm::Transport& transport) {
    for (const std::size_t n : {100, 20'011}) {
      compare(transport, {.n_elements = n}, true);
      for (const Collective collective : comm::all_collectives)
        compare(transport, {.collective = collective, .n_elements = n, .is_order_fixed = true}, false);
    }
  }));
}

TEST_P(OnDevices, AnAlgorithmCanBeNamed) {
  EXPECT_NO_THROW(comm::run_as_threads(one_node(), [](comm::Transport& transport) {
    for (const comm::Algorithm& algorithm : comm::algorithms())
      if (!comm::obstacle(algorithm, {}, transport)) compare(transport, {.n_elements = 5000}, true, &algorithm);
  }));
}

struct Increment {
  float* at;
  LOCKSTEP_HOST_DEVICE void operator()(std::size_t i) const { at[i] += 1; }
};

// The call waits for kernels that make the input, not for those after it; readers of the output wait for it.
TEST_P(OnDevices, AStepAllocatesNothingAndWaitsForItsInputOnly) {
  comm::run_as_threads(one_node(), [&](comm::Transport& transport) {
    constexpr std::size_t n = 300;
    const auto group = comm::make_staged(transport);
    EXPECT_FALSE(group->only_enqueues());
    const Call call{.n_elements = n};
    const Buffer gradients{{2 * n * sizeof(float)}, Memory::device};
    const Buffer seen{{2 * n * sizeof(float)}, Memory::pinned};
    float* const begin = gradients.on_device<float>().data();
    std::vector<std::unique_ptr<comm::DevicePlan>> plans;
    for (std::size_t k = 0; k < 2; ++k) {
      const auto bucket =
          runtime::DeviceSpan<std::byte>::at(reinterpret_cast<std::byte*>(begin + k * n), call.bytes().value);
      plans.push_back(group->make_plan(call));
      plans.back()->bind(bucket, bucket);
    }
    Stream stream;
    const auto increment = [&](std::size_t k) {
      runtime::kernel::for_each(stream, "increment", n, {runtime::kernel::region(begin + k * n, n)},
                                {runtime::kernel::region(begin + k * n, n)}, Increment{begin + k * n});
    };
    const int allocated = recorder_.n_allocations();
    const int waited = recorder_.n_host_waits();
    for (std::size_t k = 0; k < 2; ++k) {
      increment(k);
      plans[k]->start(stream);
    }
    for (std::size_t k = 0; k < 2; ++k) plans[k]->finish(stream);
    for (std::size_t k = 0; k < 2; ++k) increment(k);
    if (transport.n_ranks() == 1) {
      EXPECT_EQ(recorder_.n_allocations(), allocated);
      EXPECT_EQ(recorder_.n_host_waits(), waited + 2);
    }
    stream.copy(seen.bytes(), gradients.on_device<std::byte>());
    stream.wait();
    for (const float value : seen.as<float>()) ASSERT_EQ(value, static_cast<float>(transport.n_ranks() + 1));
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, OnDevices, testing::Values(1, 2, 3, 4), testing::PrintToStringParamName{});

}  // namespace
}  // namespace lockstep
