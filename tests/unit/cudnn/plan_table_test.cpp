// The table of gpu_facts, with made-up times.
#include "gpu/plan_table.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <sstream>

#include "support/recipe_models.hpp"

namespace lockstep::test {
namespace {

using nn::cuda::ConvPass;
using nn::cuda::Epilogue;
using nn::cuda::Product;
using nn::cuda::TimedPlan;

/// 59.19 GFLOP.
Product product_of(ConvPass pass, Epilogue epilogue = Epilogue::none) {
  return {
      {.name = "conv", .n_samples = 256, .height = 56, .width = 56, .n_in = 64, .n_out = 64, .kernel = 3, .padding = 1},
      pass,
      epilogue};
}

TimedPlan listed(const char* name, std::int64_t index, double seconds) {
  return {{.name = name, .index = index}, seconds};
}

TimedPlan hidden(const char* name, std::int64_t index, double seconds) {
  return {{.name = name, .index = index, .is_listed = false}, seconds};
}

TimedPlan split(double seconds) { return {{.name = std::string{nn::cuda::split_name}, .is_listed = false}, seconds}; }

constexpr double too_slow = std::numeric_limits<double>::infinity();

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream{text};
  return {std::istream_iterator<std::string>{stream}, {}};
}

TEST(PlanTable, RanksWhatRan) {
  PlanTable table{{product_of(ConvPass::forward), product_of(ConvPass::input_gradient)}};
  const std::vector<TimedPlan> plans{listed("eng62_k2=0", 0, 110e-6), listed("eng45", 2, 90.2e-6),
                                     listed("eng22", 3, too_slow), hidden("eng2_k1=3", 40, 82.1e-6),
                                     hidden("eng23", 41, 100e-6)};
  EXPECT_EQ(words_of(table.row(product_of(ConvPass::forward), plans)),
            (std::vector<std::string>{"conv", "256x56x56x64", "by", "64x3x3/1+1", "1", "4", "82.1", "721.0", "hidden",
                                      "90.2", "100.0", "110.0", "82.1", "82.1", "-", "eng2_k1=3"}));
  EXPECT_EQ(words_of(table.row(product_of(ConvPass::input_gradient), {{listed("eng22_k2=1", 4, 200e-6)}})),
            (std::vector<std::string>{"conv_input_gradient", "256x56x56x64", "by", "64x3x3/1+1", "1", "1", "200.0",
                                      "296.0", "5", "-", "-", "200.0", "-", "-", "-", "eng22_k2=1"}));
  EXPECT_EQ(table.sums(),
            "2 products of a step: 0.282 ms, 419.6 TFLOP/s; with the first plan for 2 of them 0.310 ms\n");
}

TEST(PlanTable, HasFusedFormsBesideSplitOnes) {
  const Product kept = product_of(ConvPass::weight_gradient, Epilogue::kept);
  PlanTable table{{kept, kept}};
  static_cast<void>(table.row(product_of(ConvPass::weight_gradient), {{listed("eng65", 0, 100e-6)}}));
  EXPECT_EQ(table.sums(),
            "2 products of a step: 0.200 ms, 591.9 TFLOP/s; with the first plan for 2 of them 0.200 ms\n");
  EXPECT_EQ(words_of(table.row(kept, {{hidden("eng1", 5, 120e-6), split(105e-6)}})),
            (std::vector<std::string>{"conv_weight_gradient_kept", "256x56x56x64", "by", "64x3x3/1+1", "2", "2",
                                      "105.0", "563.7", "split", "120.0", "-", "-", "120.0", "-", "105.0", "split"}));
  EXPECT_EQ(table.sums(),
            "2 products of a step: 0.210 ms, 563.7 TFLOP/s; with the first plan for 0 of them 0.210 ms\n");
}

TEST(PlanTable, HasItsTitlesAboveTheirNumbers) {
  PlanTable table{{product_of(ConvPass::forward)}};
  const std::string header = table.header();
  const std::string row = table.row(product_of(ConvPass::forward), {{listed("eng62_k2=0", 0, 1e-3)}});
  const std::size_t titles = header.find("\nproduct ") + 1;
  const std::size_t units = header.find('\n', titles) + 1;
  EXPECT_EQ(header.find("place", titles) + 5 - titles, row.find(" 1 ", row.find("59.2")) + 2);
  EXPECT_EQ(header.find("TFLOP/s", units) + 7 - units, row.find("59.2") + 4);
  EXPECT_EQ(header.find("plan", header.find("split", titles)) - titles, row.find("eng62"));
}

// A row for each different product, and each product of the step counted once: 54 layers in three passes, except that
// no layer needs the gradient of the first one's input. The first is computed in squares of 2x2 pixels, by kernels of
// 4x4 squares of 16 channels.
TEST(PlanTable, CountsAllProductsOfResNet50) {
  const std::vector<RecipeModel> models = recipe_models();
  const auto model = std::ranges::find(models, std::string_view{"resnet50_synthetic"}, &RecipeModel::recipe);
  ASSERT_NE(model, models.end());
  const nn::Network network = make_model(model->spec);
  const std::vector<Product> step = nn::cuda::products_of(network, model->batch);
  PlanTable table{step};
  std::set<std::string> seen;
  std::size_t n = 0;
  for (Product product : step) {
    product.epilogue = Epilogue::none;
    if (!seen.insert(fmt::format("{} {}", name(product), describe(product.problem))).second) continue;
    n += std::stoul(words_of(table.row(product, {{listed("eng0", 0, 1e-3)}}))[4]);
  }
  EXPECT_EQ(n, 3U * 54 - 1);
  constexpr double at = 112.0 * 112 * 64, first = at * 7 * 7 * 3, folded = at * 4 * 4 * 16;
  const double multiply_adds = 3 * (static_cast<double>(network.n_multiply_adds()) - first) + 2 * folded;
  const double operations = 2 * multiply_adds * static_cast<double>(model->batch);
  EXPECT_EQ(table.sums(), fmt::format("161 products of a step: 161.000 ms, {:.1f} TFLOP/s; with the first plan for 161 "
                                      "of them 161.000 ms\n",
                                      operations / 0.161 / 1e12));
}

}  // namespace
}  // namespace lockstep::test
