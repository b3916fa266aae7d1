#include <gtest/gtest.h>

#include <cmath>

#include "nn/graph/models.hpp"
#include "unit/nn_host/harness.hpp"

namespace lockstep::nn::host {
namespace {

/// A training step of `harness` and of the reference, which has the same parameters and samples.
void run_both(Harness& harness, double tolerance) {
  const LossSums expected = harness.reference_forward(), found = harness.forward();
  EXPECT_NEAR(found.loss, expected.loss, tolerance * std::abs(expected.loss));
  harness.reference.backward(0.125);
  harness.backward(0.125f);
  const Network& network = harness.tested.network;
  for (std::size_t i = 0; i < network.statistics().size(); ++i)
    EXPECT_LT(relative_error(harness.executor.statistic(static_cast<int>(i)), harness.reference.statistic(i)),
              tolerance)
        << network.statistics()[i].name;
}

double cosine(const std::vector<float>& a, const std::vector<double>& b) {
  double product = 0, a_square = 0, b_square = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    product += static_cast<double>(a[i]) * b[i];
    a_square += static_cast<double>(a[i]) * static_cast<double>(a[i]);
    b_square += b[i] * b[i];
  }
  return product / std::sqrt(a_square * b_square);
}

/// Over several layers, rounding changes which elements ReLU and pooling select: gradients as wholes still agree.
void expect_directions(Harness& harness, double least) {
  for (std::size_t i = 0; i < harness.tested.network.parameters().size(); ++i)
    EXPECT_GT(cosine(harness.gradient(i), harness.reference.gradient(i)), least)
        << harness.tested.network.parameters()[i].name;
}

// Each rounding has an error of at most 2^-9.
TEST(Bf16, LayersAreNearTheReference) {
  for (const Case& given : layer_cases()) {
    SCOPED_TRACE(given.name);
    Harness harness{given, options_of(given, Precision::bf16)};
    run_both(harness, 0.005);
    for (std::size_t i = 0; i < given.network.parameters().size(); ++i) {
      const std::string& name = given.network.parameters()[i].name;
      const bool cancels_out = given.name == "batch_norm_plain" && name == "bn1.bias";
      EXPECT_LT(harness.gradient_error(i), cancels_out ? 0.05 : 0.005) << name;
    }
    const double expected = harness.reference_forward(false).loss;
    EXPECT_NEAR(harness.forward(harness.samples.batch(), false).loss, expected, 0.005 * std::abs(expected));
  }
}

TEST(Bf16, TakesAnyNumberOfChannelsAndSamples) {
  for (const std::uint64_t n_channels : {2u, 5u, 16u, 17u, 40u}) {
    for (const std::uint64_t n : {1u, 8u}) {
      SCOPED_TRACE(std::to_string(n_channels) + " channels, " + std::to_string(n) + " samples");
      const Case given = make_case(image_network(n_channels), n, Loss::cross_entropy);
      Harness harness{given, options_of(given, Precision::bf16)};
      run_both(harness, 0.01);
      expect_directions(harness, 0.9);
    }
  }
}

TEST(Bf16, ModelsAreNearTheReference) {
  for (const Case& given : model_cases()) {
    if (given.name == "resnet50") continue;  // all its layers are in resnet18
    SCOPED_TRACE(given.name);
    Harness harness{given, options_of(given, Precision::bf16)};
    const auto& parameters = harness.tested.network.parameters();
    for (std::size_t i = 0; i < parameters.size(); ++i) {  // blocks that change their input little: see layers_test.cpp
      if (!parameters[i].name.ends_with("bn2.weight")) continue;
      for (float& element : harness.slot(harness.parameters.elements(), i)) element *= 0.125f;
      for (double& element : harness.reference.parameter(i)) element *= 0.125;
    }
    run_both(harness, 0.02);
    expect_directions(harness, 0.95);
  }
}

TEST(Bf16, HoldsHalfTheActivations) {
  Network net;  // deep: copies of a layer that computes in float32 are a small part of the whole
  Value x = net.input({16, 16, 16});
  for (int i = 0; i < 16; ++i) {
    const std::string name = std::to_string(i);
    x = net.conv("conv" + name, x, {.n_out = 16, .kernel = 3, .padding = 1, .has_bias = false});
    x = net.batch_norm("bn" + name, x, {.has_relu = true});
  }
  net.linear("fc", net.flatten(x), {.n_out = 2});
  const Case given = make_case(net, 32, Loss::cross_entropy);
  ExecutorOptions of_floats = options_of(given), of_bfloats = options_of(given, Precision::bf16);
  of_floats.is_deterministic = of_bfloats.is_deterministic = true;
  const Harness floats{given, of_floats}, bfloats{given, of_bfloats};
  EXPECT_LT(bfloats.executor.n_bytes(), 0.7 * static_cast<double>(floats.executor.n_bytes()));
  // Parameters stay float32; padding may differ.
  EXPECT_GE(bfloats.executor.arena_elements(), floats.executor.arena_elements());
}

TEST(Bf16, GivesTheSameBitsAgain) {
  const Case given = model_case("resnet18_cifar");
  ExecutorOptions options = options_of(given, Precision::bf16);
  options.is_deterministic = true;
  EXPECT_TRUE(repeats_its_bits(given, options));
}

TEST(Bf16, NamesWhatIsNotFinite) {
  const Case given = model_case("mnist_cnn");
  Harness harness{given, options_of(given, Precision::bf16)};
  harness.forward();
  EXPECT_EQ(harness.not_finite(), "");
  harness.slot(harness.parameters.elements(), 2)[0] = std::nanf("");
  EXPECT_FALSE(std::isfinite(harness.forward().loss));
  EXPECT_EQ(harness.not_finite(), "conv2");
}

/// Losses of plain gradient descent on the same samples, repeatedly.
std::vector<double> losses_of(Precision precision, int n_steps) {
  constexpr int n = 32;
  Network net;
  Value x = net.conv("conv1", net.input({3, 8, 8}), {.n_out = 16, .kernel = 3, .padding = 1, .has_bias = false});
  x = net.batch_norm("bn1", x, {.has_relu = true});
  Value y = net.conv("conv2", x, {.n_out = 16, .kernel = 3, .padding = 1, .has_bias = false});
  x = net.add(net.batch_norm("bn2", y), x, {.has_relu = true});
  net.linear("fc", net.flatten(net.max_pool(x)), {.n_out = 5});
  const Case given = make_case(net, n, Loss::cross_entropy);
  Harness harness{given, options_of(given, precision)};
  std::vector<double> losses;
  for (int step = 0; step < n_steps; ++step) {
    losses.push_back(harness.forward().loss / n);
    harness.backward(1.0f / n);
    const auto parameters = harness.parameters.elements(), gradients = harness.gradients.elements();
    for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i] -= 0.01f * gradients[i];
  }
  return losses;
}

TEST(Bf16, ConvergesAsFloat32Does) {
  constexpr int n_steps = 40;
  const std::vector<double> floats = losses_of(Precision::f32, n_steps), bfloats = losses_of(Precision::bf16, n_steps);
  ASSERT_LT(floats.back(), 0.1 * floats.front());
  EXPECT_LT(bfloats.back(), 0.1 * bfloats.front());
  for (int i = 0; i < n_steps; ++i) EXPECT_NEAR(bfloats[i], floats[i], 0.01 * floats.front()) << "step " << i;
}

}  // namespace
}  // namespace lockstep::nn::host
