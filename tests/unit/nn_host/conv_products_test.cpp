#include <gtest/gtest.h>

#include "unit/nn_host/harness.hpp"

namespace lockstep::nn::host {
namespace {

/// Maps of 1x3, 2x2 and 1x1, with and without bias, with few and more channels; the first needs no gradient of its
/// input.
std::vector<Case> few_places_cases(std::uint64_t n) {
  Network chain;
  Value x = chain.conv("conv1", chain.input({3, 4, 4}), {.n_out = 5, .kernel = 3, .stride = 2, .padding = 1});
  x = chain.conv("conv2", chain.relu(x), {.n_out = 17, .kernel = 3, .padding = 1, .has_bias = false});
  x = chain.conv("conv3", x, {.n_out = 8, .kernel = 2});
  x = chain.conv("conv4", x, {.n_out = 4, .kernel = 3, .padding = 1});
  chain.linear("fc", chain.flatten(x), {.n_out = 4});
  Network wide;
  x = wide.conv("conv1", wide.input({2, 5, 9}), {.n_out = 24, .kernel = 3, .padding = 1});
  x = wide.conv("conv2", x, {.n_out = 6, .kernel = 4, .stride = 3});
  wide.conv("conv3", x, {.n_out = 3, .kernel = 1, .stride = 2});
  return {make_case(chain, n, Loss::cross_entropy), make_case(wide, n, Loss::mse)};
}

void expect_as_reference(Harness& harness) {
  const LossSums expected = harness.reference_forward();
  EXPECT_NEAR(harness.forward().loss, expected.loss, 1e-5 * expected.loss);
  harness.reference.backward(0.5);
  harness.backward(0.5f);
  const auto& parameters = harness.tested.network.parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) EXPECT_LT(harness.gradient_error(i), 1e-5) << parameters[i].name;
}

TEST(HostConvProducts, AreAsTheReference) {
  for (const std::uint64_t n : {1u, 2u, 9u})
    for (const Case& given : few_places_cases(n)) {
      Harness harness{given};
      expect_as_reference(harness);
    }
}

TEST(HostConvProducts, TakeSmallerBatchesAndAddUp) {
  for (const Case& given : few_places_cases(6)) {
    Harness whole{given}, parts{given};
    whole.forward();
    whole.backward();
    parts.forward(parts.samples.batch(0, 4));
    parts.backward();
    parts.forward(parts.samples.batch(4, 6));
    parts.backward(1, true);
    for (std::size_t i = 0; i < given.network.parameters().size(); ++i)
      EXPECT_LT(relative_error(parts.gradient(i), whole.gradient(i)), 1e-5) << given.network.parameters()[i].name;
  }
}

// Shows that products were tested above: no other way has weights in this order here.
TEST(HostConvProducts, HaveWeightsWithChannelsLast) {
  Harness harness{few_places_cases(2)[0]};
  const std::vector<double> logical = parameter_values(harness.tested.network, 2);
  const std::span<const float> slot = harness.slot(harness.parameters.elements(), 2);
  constexpr std::size_t n_in = 5, n_places = 9;
  for (std::size_t i = 0; i < logical.size(); ++i) {
    const std::size_t o = i / (n_in * n_places), c = i / n_places % n_in, place = i % n_places;
    EXPECT_EQ(slot[(o * n_places + place) * n_in + c], static_cast<float>(logical[i]));
  }
}

}  // namespace
}  // namespace lockstep::nn::host
