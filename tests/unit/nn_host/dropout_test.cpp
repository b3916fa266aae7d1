#include <gtest/gtest.h>

#include "unit/nn_host/harness.hpp"

namespace lockstep::nn::host {
namespace {

Case dropped(std::uint64_t n) {
  Network net;
  Value x = net.conv("conv1", net.input({2, 5, 5}), {.n_out = 21, .kernel = 3});
  x = net.flatten(net.dropout(x, {.probability = 0.4}));
  x = net.dropout(net.relu(net.linear("fc1", x, {.n_out = 19})), {.probability = 0.5});
  net.linear("fc2", x, {.n_out = 3});
  return make_case(net, n, Loss::mse);
}

TEST(HostDropout, IsTheSameForAnyDivisionIntoBatches) {
  Harness whole{dropped(8)}, divided{dropped(8)};
  const double loss = whole.forward().loss;
  whole.backward();
  double sum = 0;
  bool is_first = true;
  for (const auto& [begin, end] : {std::pair{0u, 1u}, {1u, 4u}, {4u, 4u}, {4u, 8u}}) {
    sum += divided.forward(divided.samples.batch(begin, end)).loss;
    divided.backward(1, !is_first);
    is_first = false;
  }
  EXPECT_NEAR(sum / loss, 1, 1e-6);
  for (std::size_t i = 0; i < whole.tested.network.parameters().size(); ++i)
    EXPECT_LT(relative_error(divided.gradient(i), whole.gradient(i)), 1e-5);
}

TEST(HostDropout, IsAsTheReferenceWithMasksOfPhilox) {
  Harness harness{dropped(5)};
  EXPECT_NEAR(harness.forward().loss / harness.reference_forward().loss, 1, 1e-5);
  harness.reference.backward(1);
  harness.backward();
  for (std::size_t i = 0; i < harness.tested.network.parameters().size(); ++i)
    EXPECT_LT(harness.gradient_error(i), 1e-5);
}

TEST(HostDropout, DependsOnSeedEpochAndSample) {
  const Case given = dropped(4);
  ExecutorOptions other = options_of(given);
  other.seed ^= std::uint64_t{1} << 40;
  Harness harness{given}, of_other_seed{given, other};
  const double loss = harness.forward().loss;
  EXPECT_EQ(harness.forward().loss, loss);
  EXPECT_NE(of_other_seed.forward().loss, loss);
  harness.numbers.epoch += std::uint64_t{1} << 33;
  EXPECT_NE(harness.forward().loss, loss);
  harness.numbers.epoch = Harness::epoch;
  harness.samples.ids[2] += std::uint64_t{1} << 35;
  EXPECT_NE(harness.forward().loss, loss);
}

TEST(HostDropout, IsAbsentFromEvaluation) {
  Harness harness{dropped(4)};
  EXPECT_NEAR(harness.forward(harness.samples.batch(), false).loss / harness.reference_forward(false).loss, 1, 1e-5);
}

}  // namespace
}  // namespace lockstep::nn::host
