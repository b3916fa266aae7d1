#include <gtest/gtest.h>

#include <utility>

#include "support/sanitized.hpp"
#include "unit/nn_cuda/on_test_device.hpp"

namespace lockstep::nn::cuda {
namespace {

TEST(CudaUnits, AreWalkedInOneOrderWithAnyNumberOfSamples) {
  const test::TestDevice device;
  for (const WalkCase& one : walk_cases()) {
    if (is_sanitized && one.given.name == "resnet18_cifar") continue;  // takes minutes
    OnTestDevice on{one.given, Precision::f32, false, false, place_with_gaps};
    const auto walked = [&] { return std::exchange(on.walked, {}); };
    for (const std::uint64_t n : {one.given.batch.n, one.fewest, std::uint64_t{0}}) {
      SCOPED_TRACE(fmt::format("{} with {} samples", one.given.name, n));
      on.forward_part(Pass::evaluation, 0, n);
      EXPECT_EQ(walked(), one.forward);
      for (const bool adds : {false, true}) {
        on.forward_part(Pass::forward, 0, n);
        EXPECT_EQ(walked(), one.forward);
        on.backward(1, adds);
        EXPECT_EQ(walked(), one.backward);
      }
    }
    on.send(0, one.fewest, 1);
    const runtime::Recording recording = on.stream().record([&] { on.enqueue_sent(); });
    EXPECT_EQ(walked(), one.forward + one.backward) << one.given.name;
    on.stream().replay(recording);
    EXPECT_EQ(walked(), "") << "hooks are called while a pass is recorded";
    static_cast<void>(on.sums());
  }
  for (const std::string& complaint : device.complaints()) ADD_FAILURE() << complaint;
}

}  // namespace
}  // namespace lockstep::nn::cuda
