#include "nn/cuda/layout.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "unit/nn/comparison.hpp"

namespace lockstep::nn::cuda {
namespace {

/// Weights of convolutions and matrices, padded in different places.
Network image_layers() {
  Network net;
  Value x = net.conv("square", net.input({8, 6, 6}), {.n_out = 10, .kernel = 3, .padding = 1});
  x = net.conv("narrow", x, {.n_out = 24, .kernel = 1, .has_bias = false});
  x = net.conv("point", x, {.n_out = 8, .kernel = 1, .has_bias = false});
  net.linear("image", net.flatten(x), {.n_out = 3, .has_bias = false});
  return net;
}
Network rows_of_features() {
  Network net;
  Value x = net.embedding("wte", net.ids(4), {.n_rows = 10, .width = 16, .column = std::nullopt});
  x = net.linear("even", x, {.n_out = 3});
  x = net.linear("odd", x, {.n_out = 24, .has_bias = false});
  net.linear("tail", x, {.n_out = 5, .has_bias = false});
  return net;
}

/// "name: elements of the slot, rows x n_inner, elements of a block (its rows)".
std::string text_of(const Network& network, const ArenaSlot& slot) {
  return fmt::format("{}: {}, {}x{}, {} ({})", network.parameters()[static_cast<std::size_t>(slot.parameter)].name,
                     slot.slice.count, slot.n_rows, slot.n_inner, slot.block, slot.block_rows);
}

// What is padded only after its end may be cut between any 16 elements, whatever the length of its rows.
TEST(ParameterLayout, CutsMatricesBetweenElementsWhereNothingWithinIsPadded) {
  const std::vector<std::string> expected{
      "image.weight: 2304, 3x288, 288 (1)",  "point.weight: 192, 192x1, 16 (16)", "narrow.weight: 384, 24x10, 16 (1)",
      "square.weight: 1152, 10x72, 144 (2)", "square.bias: 16, 10x1, 16 (16)",    "tail.weight: 192, 120x1, 16 (16)",
      "odd.weight: 192, 24x3, 16 (2)",       "even.weight: 128, 48x1, 16 (16)",   "even.bias: 16, 3x1, 16 (16)",
      "wte.weight: 256, 160x1, 16 (16)",
  };
  std::vector<std::string> found;
  for (const Network& network : {image_layers(), rows_of_features()}) {
    const ParameterLayout layout{network, plan_pass(network), {}};
    for (const ArenaSlot& slot : layout.slots().all()) found.push_back(text_of(network, slot));
  }
  EXPECT_EQ(found, expected);
}

TEST(ParameterLayout, CutsBetweenBlocksIntoSlicesOfLogicalTensors) {
  int n_cut = 0;
  for (const Network& network : {image_layers(), rows_of_features()}) {
    const ParameterLayout layout{network, plan_pass(network), {}};
    for (const ArenaSlot& slot : layout.slots().all()) {
      const Parameter& parameter = network.parameters()[static_cast<std::size_t>(slot.parameter)];
      const std::size_t n = n_elements(parameter.shape);
      ASSERT_EQ(n % (slot.n_rows * slot.n_inner), 0U);
      for (std::size_t at = slot.block; at < slot.slice.count; at += slot.block) {
        EXPECT_TRUE(parts_rows(layout, slot, n, at)) << parameter.name << " at " << at;
        EXPECT_TRUE(parts_values(layout, slot, n, at)) << parameter.name << " at " << at;
        ++n_cut;
      }
    }
  }
  EXPECT_GT(n_cut, 50);
}

}  // namespace
}  // namespace lockstep::nn::cuda
