#include "nn/graph/network.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>

#include "core/error.hpp"

namespace lockstep::nn {
namespace {

/// The message of a refusal; fails the test if there is none.
core::Problem problem_of(const std::function<void()>& step) {
  const auto error = core::complaint_of(step);
  if (!error) {
    ADD_FAILURE() << "nothing was refused";
    return {};
  }
  EXPECT_EQ(error->code(), core::ExitCode::usage);
  return error->problem();
}

void expect_refusal(const std::function<void()>& step, const std::string& node, const std::string& what) {
  const core::Problem problem = problem_of(step);
  EXPECT_EQ(problem.where, "layer '" + node + "'");
  EXPECT_NE(problem.what.find(what), std::string::npos) << problem.what;
  EXPECT_FALSE(problem.expected.empty());
}

TEST(Network, ShapesFollowFromLayers) {
  Network net;
  Value x = net.input({3, 32, 20});
  const auto expect_shape = [&](const Shape& shape) { EXPECT_EQ(net.shape(x), shape); };
  x = net.conv("conv1", x, {.n_out = 8, .kernel = 7, .stride = 2, .padding = 3});
  expect_shape({8, 16, 10});
  x = net.batch_norm("bn1", x, {.has_relu = true});
  expect_shape({8, 16, 10});
  x = net.max_pool(x, {.kernel = 3, .stride = 2, .padding = 1});
  expect_shape({8, 8, 5});
  x = net.conv("conv2", x, {.n_out = 6, .kernel = 3});
  expect_shape({6, 6, 3});
  x = net.max_pool(x, {.kernel = 2, .stride = 2});
  expect_shape({6, 3, 1});
  x = net.dropout(net.relu(x), {.probability = 0});
  x = net.add(x, x);
  expect_shape({6, 3, 1});
  const Value flat = net.flatten(x);
  x = net.global_avg_pool(x);
  expect_shape({6});
  x = net.concat({flat, x, flat});
  expect_shape({18 + 6 + 18});
  x = net.linear("fc", x, {.n_out = 5});
  EXPECT_EQ(net.output(), Shape{5});
  EXPECT_EQ(net.shape(flat), Shape{18});
}

TEST(Network, EndsWithALogSoftmax) {
  Network net;
  const Value features = net.linear("fc", net.input({4}), {.n_out = 3});
  const Value x = net.log_softmax(features);
  EXPECT_EQ(net.output(), Shape{3});
  EXPECT_EQ(net.nodes().back().name, "log_softmax");
  expect_refusal([&] { net.relu(x); }, "relu", "logarithms of probabilities");
  expect_refusal([&] { net.linear("fc2", x, {.n_out = 2}); }, "fc2", "logarithms of probabilities");
  Network of_images;
  const Value image = of_images.input({2, 3, 3});
  expect_refusal([&] { of_images.log_softmax(image); }, "log_softmax", "image of shape 2x3x3");
}

TEST(Network, LayerNormalizationKeepsShapesAndScalesFeatures) {
  Network net;
  const Value x = net.append("ln_1", LayerNorm{}, {net.input({6})});
  EXPECT_EQ(net.shape(x), Shape{6});
  ASSERT_EQ(net.parameters().size(), 2u);
  EXPECT_EQ(net.parameters()[0].name, "ln_1.weight");
  EXPECT_EQ(net.parameters()[0].init, Init::ones);
  EXPECT_EQ(net.parameters()[1].name, "ln_1.bias");
  EXPECT_EQ(net.parameters()[1].init, Init::zeros);
  for (const Parameter& parameter : net.parameters()) EXPECT_EQ(parameter.shape, Shape{6});
  EXPECT_TRUE(net.statistics().empty());
  Network of_images;
  const Value image = of_images.input({2, 3, 3});
  expect_refusal([&] { of_images.append("", LayerNorm{}, {image}); }, "layer_norm", "image of shape 2x3x3");
}

TEST(Network, LayersOfFeaturesTakeRowsOfThem) {
  Network net;
  Value x = net.input({3, 6});
  const auto expect_shape = [&](const Shape& shape) { EXPECT_EQ(net.shape(x), shape); };
  x = net.append("ln", LayerNorm{}, {x});
  expect_shape({3, 6});
  x = net.linear("fc1", x, {.n_out = 10});
  expect_shape({3, 10});
  EXPECT_EQ(net.n_multiply_adds(), 3u * 6 * 10);
  x = net.dropout(net.relu(x), {.probability = 0.5});
  x = net.add(x, x);
  expect_shape({3, 10});
  x = net.log_softmax(x);
  expect_shape({3, 10});
  EXPECT_EQ(net.parameters()[0].shape, Shape{6});
  EXPECT_EQ(net.parameters()[2].shape, (Shape{10, 6}));
  EXPECT_EQ(n_sample_rows(net.output()), 3u);
  EXPECT_EQ(n_sample_rows({6}), 1u);
  EXPECT_EQ(n_sample_rows({2, 3, 4}), 1u);
}

TEST(Network, RefusesRowsOfFeaturesForImages) {
  Network net;
  const Value x = net.input({3, 6});
  expect_refusal([&] { net.conv("conv1", x, {.n_out = 2}); }, "conv1", "3 rows of 6 features");
  expect_refusal([&] { net.batch_norm("bn1", x); }, "bn1", "3 rows of 6 features");
  expect_refusal([&] { net.max_pool(x); }, "max_pool", "3 rows of 6 features");
  expect_refusal([&] { net.global_avg_pool(x); }, "global_avg_pool", "3 rows of 6 features");
  expect_refusal([&] { net.flatten(x); }, "flatten", "3 rows of 6 features");
  expect_refusal([&] { net.concat({x, x}); }, "concat", "3 rows of 6 features");
  expect_refusal([&] { net.add(x, net.linear("fc", x, {.n_out = 5})); }, "add", "3x6 and 3x5");
}

TEST(Network, EmbeddingsLookUpAColumnOfTheIds) {
  Network net;
  const Value ids = net.ids(2);
  EXPECT_EQ(net.shape(net.embedding("item", ids, {.n_rows = 100, .width = 7, .column = 1})), Shape{7});
  EXPECT_EQ(net.shape(net.embedding("both", ids, {.n_rows = 100, .width = 7, .column = std::nullopt})), (Shape{2, 7}));
  EXPECT_EQ(net.parameters()[0].shape, (Shape{100, 7}));
  EXPECT_EQ(net.parameters()[0].init, Init::normal);
}

TEST(Network, ParametersHavePyTorchsNamesShapesAndFans) {
  Network net;
  Value x = net.input({3, 8, 8});
  x = net.conv("a", x, {.n_out = 4, .kernel = 3});
  x = net.conv("b", x, {.n_out = 5, .kernel = 2, .has_bias = false}, Init::kaiming_normal_fan_out);
  x = net.batch_norm("c", x);
  net.linear("d", net.global_avg_pool(x), {.n_out = 6});
  const auto expect_parameter = [&](std::size_t i, const std::string& name, const Shape& shape, Init init,
                                    std::uint64_t fan) {
    const Parameter& parameter = net.parameters().at(i);
    EXPECT_EQ(parameter.name, name);
    EXPECT_EQ(parameter.shape, shape) << name;
    EXPECT_EQ(parameter.init, init) << name;
    EXPECT_EQ(parameter.fan, fan) << name;
  };
  expect_parameter(0, "a.weight", {4, 3, 3, 3}, Init::uniform_fan_in, 27);
  expect_parameter(1, "a.bias", {4}, Init::uniform_fan_in, 27);
  expect_parameter(2, "b.weight", {5, 4, 2, 2}, Init::kaiming_normal_fan_out, 20);
  expect_parameter(3, "c.weight", {5}, Init::ones, 1);
  expect_parameter(4, "c.bias", {5}, Init::zeros, 1);
  expect_parameter(5, "d.weight", {6, 5}, Init::uniform_fan_in, 5);
  expect_parameter(6, "d.bias", {6}, Init::uniform_fan_in, 5);
  EXPECT_EQ(net.parameters().size(), 7u);
  EXPECT_EQ(net.nodes()[1].parameters, (std::vector<int>{0, 1}));
  EXPECT_EQ(net.nodes()[2].parameters, std::vector<int>{2});
  EXPECT_EQ(net.n_parameter_elements(), 108u + 4 + 80 + 5 + 5 + 30 + 6);
}

TEST(Network, BatchNormHasStatisticsByChannel) {
  Network net;
  net.batch_norm("bn1", net.input({5, 2, 2}));
  ASSERT_EQ(net.statistics().size(), 2u);
  EXPECT_EQ(net.statistics()[0].name, "bn1.running_mean");
  EXPECT_EQ(net.statistics()[1].name, "bn1.running_var");
  EXPECT_EQ(net.statistics()[0].initial, 0);
  EXPECT_EQ(net.statistics()[1].initial, 1);
  EXPECT_EQ(net.statistics()[1].n_channels, 5u);
  EXPECT_EQ(net.nodes()[1].statistics, (std::vector<int>{0, 1}));
}

TEST(Network, NodesWithoutANameAreNumbered) {
  Network net;
  Value x = net.input({4});
  x = net.relu(net.relu(net.relu(x), "relu2"));
  x = net.linear("", x, {.n_out = 2});
  std::vector<std::string> names;
  for (const Node& node : net.nodes()) names.push_back(node.name);
  EXPECT_EQ(names, (std::vector<std::string>{"input", "relu", "relu2", "relu3", "linear"}));
  EXPECT_EQ(net.parameters()[0].name, "weight");
  EXPECT_EQ(net.parameters()[1].name, "bias");
}

TEST(Network, BlocksBeginTheNamesOfTheirLayers) {
  Network net;
  Value x = net.input({4});
  {
    const NameScope outer = net.block("h");
    {
      const NameScope inner = net.unit("3");
      const NameScope innermost = net.block("mlp");
      x = net.relu(net.relu(net.linear("fc", x, {.n_out = 4})));
    }
    x = net.relu(x, "last");
  }
  net.linear("fc", x, {.n_out = 2});
  std::vector<std::string> names;
  for (const Node& node : net.nodes()) names.push_back(node.name);
  EXPECT_EQ(names, (std::vector<std::string>{"input", "h.3.mlp.fc", "h.3.mlp.relu", "h.3.mlp.relu2", "h.last", "fc"}));
  std::vector<std::string> units;
  for (const Node& node : net.nodes()) units.push_back(node.unit);
  EXPECT_EQ(units, (std::vector<std::string>{"", "h.3", "h.3", "h.3", "", ""}));
  EXPECT_EQ(net.parameters()[0].name, "h.3.mlp.fc.weight");
  EXPECT_EQ(net.parameters()[2].name, "fc.weight");
  const NameScope unit = net.unit("a");
  EXPECT_THROW(static_cast<void>(net.unit("b")), core::Error);
}

TEST(Network, MultiplyAddsAreThoseOfConvolutionsAndLinearLayers) {
  Network net;
  Value x = net.input({3, 6, 5});
  x = net.conv("conv1", x, {.n_out = 4, .kernel = 3, .padding = 1});
  x = net.global_avg_pool(net.batch_norm("bn1", x));
  net.linear("fc", x, {.n_out = 10});
  EXPECT_EQ(net.n_multiply_adds(), 4u * 6 * 5 * 3 * 9 + 4 * 10);
}

TEST(Network, RefusesImagesThatAreTooSmall) {
  Network net;
  const Value x = net.input({1, 28, 4});
  expect_refusal([&] { net.conv("conv9", x, {.n_out = 2, .kernel = 5}); }, "conv9",
                 "image too small for the model: 28x4 pixels");
  expect_refusal([&] { net.max_pool(x, {.kernel = 5, .stride = 1}, "pool"); }, "pool", "image too small for the model");
  EXPECT_EQ(problem_of([&] { net.conv("c", x, {.n_out = 2, .kernel = 9, .padding = 2}); }).expected,
            "at least 5x5 pixels at this layer");
}

TEST(Network, AnImageOfExactlyTheKernelIsLargeEnough) {
  Network net;
  const Value x = net.conv("conv1", net.input({1, 5, 5}), {.n_out = 2, .kernel = 5, .stride = 3});
  EXPECT_EQ(net.shape(x), (Shape{2, 1, 1}));
}

TEST(Network, RefusesValuesOfAnotherShape) {
  Network net;
  const Value image = net.input({3, 8, 8});
  const Value features = net.flatten(image);
  expect_refusal([&] { net.linear("fc", image, {.n_out = 2}); }, "fc", "image of shape 3x8x8");
  expect_refusal([&] { net.conv("conv1", features, {.n_out = 2}); }, "conv1", "192 features");
  expect_refusal([&] { net.batch_norm("bn1", features); }, "bn1", "192 features");
  expect_refusal([&] { net.max_pool(features); }, "max_pool", "192 features");
  expect_refusal([&] { net.global_avg_pool(features); }, "global_avg_pool", "192 features");
  expect_refusal([&] { net.flatten(features); }, "flatten2", "192 features");
  expect_refusal([&] { net.add(image, features); }, "add", "3x8x8 and 192");
  expect_refusal([&] { net.concat({features, image}); }, "concat", "3x8x8");
  expect_refusal([&] { net.concat({}); }, "concat", "no values");
}

TEST(Network, LayersShareTheWeightOfAnEmbedding) {
  Network net;
  const Value wte = net.embedding("wte", net.ids(3), {.n_rows = 10, .width = 4, .column = std::nullopt});
  const Value head = net.linear("head", wte, {.n_out = 10}, wte);
  EXPECT_EQ(net.shape(head), (Shape{3, 10}));
  std::vector<std::string> names;
  for (const Parameter& parameter : net.parameters()) names.push_back(parameter.name);
  EXPECT_EQ(names, (std::vector<std::string>{"wte.weight", "head.bias"}));
  EXPECT_EQ(net.nodes().back().parameters, (std::vector<int>{0, 1}));
  EXPECT_EQ(net.n_parameter_elements(), 50u);
  EXPECT_EQ(net.n_multiply_adds(), 3u * 10 * 4);
  EXPECT_EQ(net.n_readers(0), 2u);
  EXPECT_EQ(net.n_readers(1), 1u);
}

TEST(Network, RefusesToShareWhatDoesNotFit) {
  Network net;
  const Value wte = net.embedding("wte", net.ids(3), {.n_rows = 10, .width = 4, .column = std::nullopt});
  const Value fc = net.linear("fc", wte, {.n_out = 4});
  expect_refusal([&] { net.linear("head", fc, {.n_out = 9}, wte); }, "head", "'wte.weight' of shape 10x4");
  expect_refusal([&] { net.linear("head", fc, {.n_out = 4}, fc); }, "head", "the weight of 'fc'");
  expect_refusal([&] { net.append("ln", LayerNorm{}, {fc}, wte); }, "ln", "'wte.weight' of shape 10x4");
  expect_refusal([&] { net.append("relu", Relu{}, {fc}, wte); }, "relu", "'wte.weight' of shape 10x4");
  EXPECT_EQ(net.nodes().size(), 3u);
  EXPECT_EQ(net.parameters().size(), 3u);
  EXPECT_ANY_THROW(net.linear("head", fc, {.n_out = 10}, {7}));
}

TEST(Network, RefusesIdsForNumbersAndNumbersForIds) {
  Network of_ids;
  const Value ids = of_ids.ids(2);
  expect_refusal([&] { of_ids.linear("fc", ids, {.n_out = 1}); }, "fc", "2 ids");
  expect_refusal([&] { of_ids.relu(ids); }, "relu", "2 ids");
  expect_refusal([&] { of_ids.embedding("user", ids, {.n_rows = 3, .width = 2, .column = 2}); }, "user", "column 2");
  expect_refusal([&] { of_ids.embedding("user", ids, {.n_rows = 0, .width = 2}); }, "user", "no rows");
  Network of_numbers;
  const Value x = of_numbers.input({2});
  expect_refusal([&] { of_numbers.embedding("user", x, {.n_rows = 3, .width = 2}); }, "user", "numbers of shape 2");
}

TEST(Network, RefusesLayersThatMakeNoSense) {
  Network net;
  const Value image = net.input({3, 8, 8});
  const Value features = net.flatten(image);
  expect_refusal([&] { net.linear("fc", features, {.n_out = 0}); }, "fc", "no outputs");
  expect_refusal([&] { net.conv("c", image, {.n_out = 0}); }, "c", "no output channels");
  expect_refusal([&] { net.conv("c", image, {.n_out = 1, .kernel = 0}); }, "c", "no pixels in the kernel");
  expect_refusal([&] { net.conv("c", image, {.n_out = 1, .stride = 0}); }, "c", "no stride");
  expect_refusal([&] { net.max_pool(image, {.kernel = 3, .padding = 2}); }, "max_pool", "padding 2");
  for (const double probability : {-0.1, 1.0, std::numeric_limits<double>::quiet_NaN()})
    expect_refusal([&] { net.dropout(image, {.probability = probability}); }, "dropout", "probability");
}

TEST(Network, RefusesNamesGivenTwiceAndSecondInputs) {
  Network net;
  const Value x = net.input({4});
  net.linear("fc", x, {.n_out = 4});
  expect_refusal([&] { net.linear("fc", x, {.n_out = 4}); }, "fc", "name used twice");
  expect_refusal([&] { net.relu(x, "fc"); }, "fc", "name used twice");
  expect_refusal([&] { net.input({4}); }, "input", "second input");
  expect_refusal([&] { net.ids(1); }, "ids", "second input");
  EXPECT_EQ(net.nodes().size(), 2u);
  EXPECT_EQ(net.parameters().size(), 2u);
}

TEST(Network, RefusesInputsThatAreNoSamples) {
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{3, 0}, Shape{3, 0, 4}, Shape{1, 2, 3, 4}})
    expect_refusal([&] { Network{}.input(shape); }, "input", "samples of shape '" + to_string(shape) + "'");
  expect_refusal([] { Network{}.ids(0); }, "ids", "no ids");
}

TEST(Network, AValueOfAnotherNetworkIsADefectHere) {
  Network net;
  net.input({4});
  for (const int node : {-1, 1}) {
    const auto error = core::complaint_of([&] { net.relu({node}); });
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->code(), core::ExitCode::system);
  }
}

TEST(Network, PixelsAreThoseOfImages) {
  Network net;
  EXPECT_ANY_THROW(net.input({20}, {.is_pixels = true}));
  EXPECT_ANY_THROW(net.input({4, 5}, {.is_pixels = true}));
  EXPECT_NO_THROW(net.input({1, 4, 5}, {.is_pixels = true}));
}

}  // namespace
}  // namespace lockstep::nn
