#include "nn/graph/models.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"

namespace lockstep::nn {
namespace {

struct Named {
  std::string name;
  Shape shape;
  bool operator==(const Named&) const = default;
};

std::ostream& operator<<(std::ostream& stream, const Named& named) {
  return stream << named.name << ' ' << to_string(named.shape);
}

/// Facts that golden/make_golden.py has found in the model of PyTorch or torchvision.
std::vector<Named> parameters_in_torch(const std::string& wanted) {
  std::ifstream file{std::filesystem::path{__FILE__}.parent_path().parent_path() / "golden" / "parameters.txt"};
  std::vector<Named> parameters;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words{line};
    std::string model;
    Named parameter;
    words >> model >> parameter.name;
    if (model != wanted) continue;
    for (std::uint64_t n = 0; words >> n;) parameter.shape.push_back(n);
    parameters.push_back(parameter);
  }
  return parameters;
}

ModelSpec image_net(const std::string& name) { return {.name = name, .input = {3, 224, 224}, .n_outputs = 1000}; }

ModelSpec cifar() { return {.name = "resnet18", .input = {3, 32, 32}, .n_outputs = 10, .cifar_stem = true}; }

struct Expected {
  std::string golden;  ///< its name in parameters.txt
  ModelSpec spec;
  std::uint64_t n_parameters;  ///< elements
};

std::ostream& operator<<(std::ostream& stream, const Expected& expected) { return stream << expected.golden; }

std::string golden_name(const testing::TestParamInfo<Expected>& info) { return info.param.golden; }

class Model : public testing::TestWithParam<Expected> {};

TEST_P(Model, HasThePyTorchModelsParameters) {
  const Network net = make_model(GetParam().spec);
  std::vector<Named> parameters;
  for (const Parameter& parameter : net.parameters()) parameters.push_back({parameter.name, parameter.shape});
  const std::vector<Named> expected = parameters_in_torch(GetParam().golden);
  ASSERT_FALSE(expected.empty());
  EXPECT_EQ(parameters, expected);
  EXPECT_EQ(net.n_parameter_elements(), GetParam().n_parameters);
  EXPECT_EQ(n_elements(net.output()), GetParam().spec.n_outputs);
}

INSTANTIATE_TEST_SUITE_P(
    All, Model,
    testing::Values(Expected{"toy", {.name = "toy", .input = {20}, .n_outputs = 1}, 21},
                    Expected{"mnist_cnn", {.name = "mnist_cnn", .input = {1, 28, 28}, .n_outputs = 10}, 1'199'882},
                    Expected{"resnet18", image_net("resnet18"), 11'689'512},
                    Expected{"resnet18_cifar", cifar(), 11'173'962},
                    Expected{"resnet34", image_net("resnet34"), 21'797'672},
                    Expected{"resnet50", image_net("resnet50"), 25'557'032},
                    Expected{"resnet101", image_net("resnet101"), 44'549'160},
                    Expected{"resnet152", image_net("resnet152"), 60'192'808},
                    Expected{"movielens", {.name = "movielens", .n_outputs = 1, .n_ids = {610, 9724}}, 2'700'089}),
    golden_name);

// torchvision, "Table of all available classification weights", column GFLOPS.
TEST(Models, ResNetsCostWhatTorchvisionStates) {
  for (const auto& [name, expected] :
       {std::pair{"resnet18", 1.81}, std::pair{"resnet34", 3.66}, std::pair{"resnet50", 4.09},
        std::pair{"resnet101", 7.80}, std::pair{"resnet152", 11.51}})
    EXPECT_NEAR(static_cast<double>(make_model(image_net(name)).n_multiply_adds()) / 1e9, expected, 0.005) << name;
}

TEST(Models, EachIsFoundByItsName) {
  for (const std::string_view name :
       {"toy", "mnist_cnn", "resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "movielens"})
    EXPECT_EQ(find_model(name).name, name);
}

TEST(Models, EmbeddingsAreAsWideAsTheTutorials) {
  EXPECT_EQ(embedding_width(610), 58u);
  EXPECT_EQ(embedding_width(9724), 274u);
  EXPECT_EQ(embedding_width(1), 2u);
  EXPECT_EQ(embedding_width(39'000), 596u);
  EXPECT_EQ(embedding_width(1'000'000), 600u);
}

TEST(Models, StemsDifferInStrideAndPooling) {
  const Network with_cifar_stem = make_model(cifar());
  EXPECT_EQ(with_cifar_stem.shape({2}), (Shape{64, 32, 32}));
  for (const Node& node : with_cifar_stem.nodes()) EXPECT_FALSE(std::holds_alternative<MaxPool>(node.layer));
  const Network with_image_net_stem = make_model(image_net("resnet18"));
  EXPECT_EQ(with_image_net_stem.shape({2}), (Shape{64, 112, 112}));
  EXPECT_EQ(with_image_net_stem.shape({3}), (Shape{64, 56, 56}));
}

TEST(Models, EndInALogSoftmaxWhereTheLossWantsIt) {
  ModelSpec spec{.name = "mnist_cnn", .input = {1, 28, 28}, .n_outputs = 10};
  const Network without = make_model(spec);
  spec.has_log_softmax = true;
  const Network with = make_model(spec);
  EXPECT_TRUE(std::holds_alternative<LogSoftmax>(with.nodes().back().layer));
  EXPECT_EQ(with.nodes().size(), without.nodes().size() + 1);
  EXPECT_EQ(with.output(), without.output());
}

TEST(Models, ReluIsPartOfTheNodeBeforeIt) {
  const Network net = make_model(image_net("resnet50"));
  for (const Node& node : net.nodes()) {
    EXPECT_FALSE(std::holds_alternative<Relu>(node.layer)) << node.name;
    if (const auto* add = std::get_if<Add>(&node.layer)) {
      EXPECT_TRUE(add->has_relu) << node.name;
    }
    if (const auto* bn = std::get_if<BatchNorm>(&node.layer)) {
      const bool is_before_add = node.name.ends_with("bn3") || node.name.ends_with("downsample.1");
      EXPECT_EQ(bn->has_relu, !is_before_add) << node.name;
    }
  }
}

TEST(Models, ResNetsMayHaveFewerBlocks) {
  ModelSpec cut = image_net("resnet50");
  const auto names = [&](int most_blocks) {
    cut.most_blocks = most_blocks;
    std::vector<Named> all;
    const Network net = make_model(cut);
    for (const Parameter& parameter : net.parameters()) all.push_back({parameter.name, parameter.shape});
    return all;
  };
  EXPECT_EQ(names(6), names(0)) << "it has no more";
  std::vector<Named> expected = names(0);
  std::erase_if(expected, [](const Named& named) { return named.name.starts_with("layer") && named.name[7] != '0'; });
  EXPECT_EQ(names(1), expected);
}

TEST(Models, ResNetsRunOnTheSmallestImages) {
  for (const bool cifar_stem : {false, true}) {
    ModelSpec spec = cifar();
    spec.input = {3, 1, 1};
    spec.cifar_stem = cifar_stem;
    EXPECT_EQ(make_model(spec).output(), Shape{10});
  }
}

core::Problem problem_of(const ModelSpec& spec) {
  const auto error = core::complaint_of([&] { static_cast<void>(make_model(spec)); });
  if (!error) {
    ADD_FAILURE() << spec.name << " was not refused";
    return {};
  }
  EXPECT_EQ(error->code(), core::ExitCode::usage);
  return error->problem();
}

TEST(Models, RefusesAnUnknownModelWithTheNearMiss) {
  const core::Problem problem = problem_of({.name = "resnet51", .input = {3, 32, 32}, .n_outputs = 10});
  EXPECT_EQ(problem.what, "unknown model 'resnet51'");
  EXPECT_NE(problem.expected.find("mnist_cnn"), std::string::npos);
  EXPECT_EQ(problem.fix, "did you mean 'resnet50'?");
  EXPECT_EQ(problem_of({.name = "transformer"}).fix, "");
}

TEST(Models, RefusesWhatDoesNotFit) {
  const core::Problem small = problem_of({.name = "mnist_cnn", .input = {1, 5, 5}, .n_outputs = 10});
  EXPECT_EQ(small.where, "layer 'max_pool'");
  EXPECT_NE(small.what.find("image too small for the model"), std::string::npos);
  EXPECT_EQ(problem_of({.name = "resnet18", .input = {20}, .n_outputs = 10}).where, "layer 'conv1'");
  EXPECT_EQ(problem_of({.name = "toy", .input = {20}, .n_outputs = 0}).what, "no outputs");
  EXPECT_EQ(problem_of({.name = "toy", .input = {4, 5}, .n_outputs = 1}).what, "samples of shape '4x5'");
  EXPECT_EQ(problem_of({.name = "toy", .input = {20}, .n_outputs = 1, .cifar_stem = true}).where, "model 'toy'");
  EXPECT_EQ(problem_of({.name = "toy", .n_outputs = 1, .n_ids = {3, 4}}).what, "samples are ids");
  EXPECT_EQ(problem_of({.name = "movielens", .input = {20}, .n_outputs = 1}).what, "samples of 0 ids");
  EXPECT_EQ(problem_of({.name = "movielens", .n_outputs = 1, .n_ids = {3, 0}}).where, "layer 'item_factors'");
}

}  // namespace
}  // namespace lockstep::nn
