#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "nn/graph/models.hpp"
#include "unit/nn_host/harness.hpp"

namespace lockstep::nn::host {
namespace {

/// The message of the core::Error that `step` throws.
template <class Step>
std::string complaint(const Step& step) {
  const auto error = core::complaint_of(step);
  return error ? error->what() : "";
}

Case classes_case() {
  Network net;
  net.linear("fc", net.relu(net.linear("hidden", net.input({3}), {.n_out = 4})), {.n_out = 2});
  return make_case(net, 3, Loss::cross_entropy);
}

TEST(HostRefusals, NameALabelThatIsNoClass) {
  for (const std::int64_t label : {-1, 2}) {
    for (const Loss loss : {Loss::cross_entropy, Loss::nll}) {
      Case given = classes_case();
      given.options.loss = loss;
      Harness harness{given};
      harness.samples.classes[1] = label;
      EXPECT_NE(complaint([&] { harness.forward(); }).find("label " + std::to_string(label)), std::string::npos);
      EXPECT_THROW(harness.backward(), core::Error);
    }
  }
}

TEST(HostRefusals, NameAnIdThatIsNoRow) {
  Network net;
  net.linear("fc", net.embedding("users", net.ids(1), {.n_rows = 5, .width = 2}), {.n_out = 1});
  Case given{"", net};
  given.batch = {.n = 2, .ids = {4, 5}, .targets = {0, 0}};
  given.options.loss = Loss::mse;
  Harness harness{given};
  const std::string message = complaint([&] { harness.forward(); });
  EXPECT_NE(message.find("id 5"), std::string::npos) << message;
  EXPECT_NE(message.find("users"), std::string::npos) << message;
}

TEST(HostRefusals, NameTheColumnOfAnIdInASequence) {
  Network net;
  net.embedding("wte", net.ids(3), {.n_rows = 5, .width = 2, .column = std::nullopt});
  Case given{"", net};
  given.batch = {.n = 2, .ids = {4, 0, 1, 2, 3, 5}, .classes = {0, 0, 0, 0, 0, 0}};
  Harness harness{given};
  const std::string message = complaint([&] { harness.forward(); });
  EXPECT_NE(message.find("id 5 in column 2"), std::string::npos) << message;
}

TEST(HostRefusals, OfBatchNormalizationOfASingleValue) {
  Network net;
  Value x = net.conv("conv1", net.input({1, 3, 3}), {.n_out = 2, .kernel = 3});
  net.linear("fc", net.flatten(net.batch_norm("bn1", x)), {.n_out = 2});
  Harness harness{make_case(net, 3, Loss::cross_entropy)};
  harness.forward();
  EXPECT_NE(complaint([&] { harness.forward(harness.samples.batch(0, 1)); }).find("bn1"), std::string::npos);
  EXPECT_GT(harness.forward(harness.samples.batch(0, 1), false).loss, 0);
  harness.forward();
}

TEST(HostRefusals, OfBatchesThatDoNotFit) {
  const Case given = classes_case();
  Harness harness{given};
  HostExecutor unbound{given.network, options_of(given)};
  EXPECT_THROW(unbound.enqueue(harness.samples.batch(), Pass::forward, {}, harness, harness.stream), core::Error);
  EXPECT_THROW(harness.executor.bind(harness.places()), core::Error) << "slots stay where they are";
  data::Batch batch = harness.samples.batch();
  batch.n = 4;
  EXPECT_THROW(harness.forward(batch), core::Error);
  batch.n = 2;
  EXPECT_THROW(harness.forward(batch), core::Error);
  EXPECT_THROW((HostExecutor{given.network, {.max_batch = 0}}), core::Error);
}

TEST(HostNotFinite, NamesTheFirstNodeForward) {
  Harness harness{model_case("mnist_cnn")};
  harness.forward();
  EXPECT_EQ(harness.not_finite(), "");
  harness.slot(harness.parameters.elements(), 2)[0] = std::nanf("");
  EXPECT_FALSE(std::isfinite(harness.forward().loss));
  EXPECT_EQ(harness.not_finite(), "conv2");
}

// The ReLU of a batch normalization turns NaN into 0.
TEST(HostNotFinite, IsNotHiddenByBatchNormalization) {
  for (const Case& given : layer_cases()) {
    if (given.name != "batch_norm") continue;
    for (const std::size_t parameter : {0u, 1u}) {
      Harness harness{given};
      float& element = harness.slot(harness.parameters.elements(), parameter)[1];
      const float before = element;
      element = std::nanf("");
      EXPECT_TRUE(std::isnan(harness.forward().loss));
      EXPECT_EQ(harness.not_finite(), "bn1");
      EXPECT_TRUE(std::isnan(harness.forward(harness.samples.batch(), false).loss));
      element = before;
      harness.samples.numbers[5] = INFINITY;
      EXPECT_TRUE(std::isnan(harness.forward().loss));
      EXPECT_EQ(harness.not_finite(), "bn1");
    }
  }
}

TEST(HostNotFinite, NamesTheFirstNodeBackward) {
  Harness harness{classes_case()};
  harness.forward();
  harness.backward(std::numeric_limits<float>::infinity());
  EXPECT_EQ(harness.not_finite(), "fc");
  harness.forward();
  harness.backward();
  EXPECT_EQ(harness.not_finite(), "");
}

TEST(HostNotFinite, LeavesRunningStatisticsAlone) {
  for (const Case& given : layer_cases()) {
    if (given.name != "batch_norm") continue;
    Harness harness{given};
    harness.forward();
    const auto running = harness.executor.statistic(0);
    const std::vector<float> before(running.begin(), running.end());
    EXPECT_EQ(harness.not_finite(), "");
    EXPECT_EQ(std::vector<float>(running.begin(), running.end()), before);
  }
}

}  // namespace
}  // namespace lockstep::nn::host
