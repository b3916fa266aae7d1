// Time per layer: which layer it belongs to, and that measuring it only adds marks.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "nn/plan/fusion.hpp"
#include "unit/nn_cuda/on_test_device.hpp"

namespace lockstep::nn::cuda {
namespace {

class LayerTimesTest : public ::testing::Test {
 protected:
  void TearDown() override {
    for (const std::string& complaint : device_.complaints()) ADD_FAILURE() << complaint;
  }

  static Case model(const std::string& name) {
    for (const Case& given : model_cases())
      if (given.name == name) return given;
    throw std::out_of_range{name};
  }
  static void step(OnTestDevice& on, bool adds = false) {
    on.forward(true);
    on.backward(0.5F, adds);
  }
  std::vector<std::string> take_marks() {
    std::vector<std::string> lines = device_.take_lines();
    std::erase_if(lines, [](const std::string& line) { return line.find(" time") == std::string::npos; });
    return lines;
  }

  test::TestDevice device_{};
};

TEST_F(LayerTimesTest, AreOfAllLayersThatDoSomethingInForwardOrder) {
  const Case given = model("mnist_cnn");
  OnTestDevice on{given, Precision::f32};
  LayerTimes& times = on.executor().layer_times();
  EXPECT_FALSE(times.is_profiling());
  EXPECT_TRUE(times.end_profile().empty()) << "nobody began one";
  times.start_profile();
  EXPECT_TRUE(times.is_profiling());
  for (int i = 0; i < 3; ++i) step(on);
  const std::vector<ProfileRow> rows = times.end_profile();
  EXPECT_FALSE(times.is_profiling());

  std::vector<std::string> wanted, found;
  for (const Node& node : given.network.nodes()) {
    const Value value{static_cast<int>(&node - given.network.nodes().data())};
    const bool is_part_of_products = std::holds_alternative<Relu>(node.layer) &&
                                     is_rectified(given.network, node.inputs[0]) &&
                                     has_masked_gradient(given.network, value);
    if (!std::holds_alternative<Flatten>(node.layer) && !is_part_of_products) wanted.push_back(node.name);
  }
  for (const ProfileRow& row : rows) {
    found.push_back(row.node);
    const auto node = std::ranges::find(given.network.nodes(), row.node, &Node::name);
    ASSERT_NE(node, given.network.nodes().end()) << row.node;
    const auto index = static_cast<int>(node - given.network.nodes().begin());
    EXPECT_GT(row.forward_s, 0) << row.node;
    EXPECT_EQ(row.backward_s > 0, needs_gradient(given.network, {index})) << row.node;
  }
  EXPECT_EQ(found, wanted);

  times.start_profile();
  EXPECT_TRUE(times.end_profile().empty()) << "each begins anew";
}

// A matrix product takes longer than a ReLU of its result, unless a GPU waits for its host.
TEST_F(LayerTimesTest, GoToTheLayerThatTakesThem) {
  if (!device_.is_recorder()) GTEST_SKIP() << "of single steps it is not known what a GPU waits for";
  Network net;
  const Value product = net.linear("product", net.input({1024}), {.n_out = 1024, .has_bias = false});
  net.linear("sums", net.relu(product, "relu"), {.n_out = 1});
  Case given{"product", net};
  given.batch = {.n = 16, .classes = std::vector<std::int64_t>(16, 0)};
  for (std::uint64_t i = 0; i < 16 * 1024; ++i) given.batch.x.push_back(value(3, i));
  OnTestDevice on{given, Precision::f32};
  step(on);
  on.executor().layer_times().start_profile();
  step(on);
  const std::vector<ProfileRow> rows = on.executor().layer_times().end_profile();
  ASSERT_EQ(rows.size(), 4U);
  const auto row = [&](const std::string& node) { return *std::ranges::find(rows, node, &ProfileRow::node); };
  EXPECT_GT(row("product").forward_s, row("relu").forward_s);
  EXPECT_GT(row("product").backward_s, row("relu").backward_s);
}

TEST_F(LayerTimesTest, ChangeNoBits) {
  const Case given = model("mnist_cnn");
  std::vector<float> gradients[2];
  double losses[2] = {};
  for (const int is_profiled : {0, 1}) {
    OnTestDevice on{given, Precision::bf16};
    if (is_profiled == 1) on.executor().layer_times().start_profile();
    step(on);
    step(on, true);
    EXPECT_EQ(on.executor().layer_times().end_profile().empty(), is_profiled == 0);
    losses[is_profiled] = on.sums().loss;
    const auto found = on.fetch_gradients();
    gradients[is_profiled].assign(found.begin(), found.end());
  }
  EXPECT_EQ(losses[1], losses[0]);
  EXPECT_EQ(gradients[1], gradients[0]);
}

TEST_F(LayerTimesTest, MarkNothingUnlessAskedFor) {
  if (!device_.is_recorder()) GTEST_SKIP() << "only a recorder tells what it is asked for";
  OnTestDevice on{model("mnist_cnn"), Precision::f32};
  step(on);
  EXPECT_TRUE(take_marks().empty());
  on.executor().layer_times().start_profile();
  step(on);
  EXPECT_GT(take_marks().size(), 2 * on.executor().layer_times().end_profile().size());
  on.send(0, 1, 1);  // one that may be recorded
  on.enqueue_sent();
  on.stream().wait();
  EXPECT_TRUE(take_marks().empty());
  on.executor().layer_times().start_profile();
  on.send(0, 1, 1);
  EXPECT_ANY_THROW(on.enqueue_sent()) << "marks are no part of a recording";
}

}  // namespace
}  // namespace lockstep::nn::cuda
