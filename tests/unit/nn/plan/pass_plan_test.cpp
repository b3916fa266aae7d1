#include "nn/plan/pass_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nn/plan/arena_plan.hpp"
#include "nn/plan/layer_plan.hpp"

namespace lockstep::nn {
namespace {

struct Planned {
  const char* name;
  Network network;
  std::vector<std::string> backward;  ///< "node: readers; completed parameters +parameters it adds to"
};

Network chain() {
  Network net;
  const Value x = net.relu(net.linear("a", net.input({8}), {.n_out = 8}));
  net.linear("b", x, {.n_out = 2, .has_bias = false});
  return net;
}

Network residual() {
  Network net;
  const Value x = net.linear("a", net.input({8}), {.n_out = 8});
  const Value y = net.linear("b", x, {.n_out = 8});
  net.linear("c", net.add(x, y), {.n_out = 2});
  return net;
}

Network several_readers() {
  Network net;
  const Value x = net.linear("a", net.input({8}), {.n_out = 8});
  net.concat({net.add(x, x), x, net.relu(x)});
  return net;
}

Network concat_with_input() {
  Network net;
  const Value x = net.input({8});
  net.concat({x, net.linear("a", x, {.n_out = 4})});
  return net;
}

Network two_tables() {
  Network net;
  const Value ids = net.ids(2);
  const Value user = net.embedding("user", ids, {.n_rows = 9, .width = 4});
  const Value item = net.embedding("item", ids, {.n_rows = 5, .width = 4, .column = 1});
  net.linear("out", net.concat({user, item}), {.n_out = 1});
  return net;
}

Network tied() {
  Network net;
  const Value wte = net.embedding("wte", net.ids(2), {.n_rows = 9, .width = 4, .column = std::nullopt});
  const Value middle = net.linear("middle", wte, {.n_out = 9}, wte);
  net.linear("head", net.linear("a", middle, {.n_out = 4}), {.n_out = 9}, wte);
  return net;
}

std::vector<Planned> networks() {
  return {{"chain", chain(), {"b: ; b.weight", "relu: b[0];", "a: relu[0]; a.weight a.bias"}},
          {"residual",
           residual(),
           {"c: ; c.weight c.bias", "add: c[0];", "b: add[1]; b.weight b.bias", "a: add[0] b[0]; a.weight a.bias"}},
          {"several readers",
           several_readers(),
           {"concat: ;", "relu: concat[2];", "add: concat[0];", "a: concat[1] relu[0] add[0] add[1]; a.weight a.bias"}},
          {"concat with the input", concat_with_input(), {"concat: ;", "a: concat[1]; a.weight a.bias"}},
          {"two tables",
           two_tables(),
           {"out: ; out.weight out.bias", "concat: out[0];", "item: concat[1]; item.weight",
            "user: concat[0]; user.weight"}},
          {"tied",
           tied(),
           {"head: ; head.bias", "a: head[0]; a.weight a.bias", "middle: a[0]; middle.bias +wte.weight",
            "wte: middle[0]; wte.weight +wte.weight"}}};
}

std::string words_of(const Network& network, const PassPlan& plan, const BackwardStep& step) {
  std::string text = network.nodes()[step.node].name + ":";
  for (const Reader& reader : step.readers)
    text += " " + network.nodes()[reader.node].name + "[" + std::to_string(reader.input) + "]";
  if (step.readers.empty()) text += " ";
  text += ";";
  for (std::size_t i = step.completed.offset; i < step.completed.end(); ++i) {
    EXPECT_EQ(plan.parameters[i].node, step.node);
    text += " " + network.parameters()[static_cast<std::size_t>(plan.parameters[i].parameter)].name;
  }
  for (const int parameter : network.nodes()[step.node].parameters)
    if (plan.adds(step, parameter)) text += " +" + network.parameters()[static_cast<std::size_t>(parameter)].name;
  return text;
}

TEST(PassPlan, FollowsFromTheNetwork) {
  for (const Planned& given : networks()) {
    const PassPlan plan = plan_pass(given.network);
    std::vector<std::string> backward;
    for (const BackwardStep& step : plan.backward) backward.push_back(words_of(given.network, plan, step));
    EXPECT_EQ(backward, given.backward) << given.name;
    EXPECT_EQ(plan.parameters.size(), given.network.parameters().size()) << given.name;
  }
}

TEST(PassPlan, EveryGradientIsWrittenOnceAndByItsLastReader) {
  for (const Planned& given : networks()) {
    const PassPlan plan = plan_pass(given.network);
    std::vector<std::size_t> writers(plan.parameters.size(), 0);
    std::size_t n_written = 0;
    for (const BackwardStep& step : plan.backward)
      for (const std::size_t at : step.written) {
        writers[at] = step.node;
        ++n_written;
      }
    EXPECT_EQ(n_written, plan.parameters.size()) << given.name;
    for (std::size_t i = 0; i < given.network.nodes().size(); ++i)
      for (std::size_t at = 0; at < plan.parameters.size(); ++at) {
        const bool reads = std::ranges::count(given.network.nodes()[i].parameters, plan.parameters[at].parameter) > 0;
        EXPECT_TRUE(!reads || i <= writers[at]) << given.name;
      }
  }
}

TEST(PassPlan, TimesAreInTheOrderOfThePass) {
  const PassPlan plan = plan_pass(residual());
  std::vector<int> times;
  for (std::size_t i = 0; i < plan.n_nodes(); ++i) times.push_back(plan.time_of_forward(i));
  times.insert(times.end(), {plan.time_of_loss(), plan.time_of_loss_gradient()});
  for (std::size_t i = plan.n_nodes(); i-- > 0;) times.push_back(plan.time_of_backward(i));
  for (std::size_t i = 0; i < times.size(); ++i) EXPECT_EQ(times[i], static_cast<int>(i));
}

/// A device that keeps numbers of buffers, and makes one for each value, gradient and sum.
struct PlainBuilder {
  const Network& network;
  const PassPlan& plan;
  struct {
    std::function<void()> on_progress{};
  } options{};
  Buffers buffers{};
  int time = 0;
  int n_waiting = 0;

  std::size_t make() {
    const std::size_t buffer = buffers.add(64);
    buffers.use(buffer, time);
    return buffer;
  }
  [[nodiscard]] bool needs_gradient(Value value) const {
    return plan.needs_gradient[static_cast<std::size_t>(value.node)];
  }
  void begin_backward(const BackwardStep&) {}
  void await(std::size_t) { ++n_waiting; }
  void take(std::size_t gradient) {
    --n_waiting;
    buffers.use(gradient, time);
  }
  std::size_t add_up(std::size_t, std::size_t, std::size_t) { return make(); }
};

class PlainLayer final : public PlannedLayer<PlainBuilder, std::size_t, int> {
 public:
  PlainLayer(PlainBuilder& builder, std::size_t n_inputs, std::size_t n_taken)
      : n_inputs_{n_inputs}, n_taken_{n_taken} {
    output_ = builder.make();
  }
  std::size_t n_gradients_taken() const override { return n_taken_; }
  void forward(int&) override {}
  void backward(int&) override {}
  std::vector<std::size_t> plan_backward(PlainBuilder& builder, std::span<const std::size_t> gradients) override {
    EXPECT_LE(gradients.size(), n_taken_);
    std::vector<std::size_t> results(n_inputs_);
    for (std::size_t& result : results) result = builder.make();
    return results;
  }

 private:
  std::size_t n_inputs_, n_taken_;
};

/// Plans a network whose layers accept `n_taken` gradients; returns the steps of its nodes.
std::vector<LayerStep<PlainLayer, std::size_t>> plan_layers(PlainBuilder& builder, std::size_t n_taken) {
  std::vector<LayerStep<PlainLayer, std::size_t>> steps(builder.plan.n_nodes());
  plan_forward(builder, steps, [&](const PlannedNode<PlainBuilder, std::size_t>& node) {
    return std::make_unique<PlainLayer>(builder, node.inputs.size(), n_taken);
  });
  plan_backward(builder, steps, builder.make());
  return steps;
}

TEST(LayerPlan, AddsGradientsUpInTheOrderInWhichTheyArrive) {
  const Network network = several_readers();
  const PassPlan plan = plan_pass(network);
  for (std::size_t n_taken = 1; n_taken <= 5; ++n_taken) {
    PlainBuilder builder{network, plan};
    const auto steps = plan_layers(builder, n_taken);
    EXPECT_EQ(builder.n_waiting, 0) << "every gradient is taken once";
    const auto& [layer, sums, gradients] = steps[1];
    ASSERT_EQ(gradients.size(), std::min<std::size_t>(n_taken, 4)) << n_taken;
    ASSERT_EQ(sums.size(), 4 - gradients.size()) << n_taken;
    for (std::size_t i = 1; i < sums.size(); ++i) EXPECT_EQ(sums[i].a, sums[i - 1].out) << n_taken;
    for (std::size_t i = 1; i < sums.size(); ++i) EXPECT_GT(sums[i].b, sums[i - 1].b) << n_taken;
    EXPECT_TRUE(sums.empty() || gradients[0] == sums.back().out) << n_taken;
  }
}

TEST(LayerPlan, KeepsGradientsUntilTheirNodeIsPlanned) {
  const Network network = residual();
  const PassPlan plan = plan_pass(network);
  PlainBuilder builder{network, plan};
  const auto steps = plan_layers(builder, 2);
  for (const BackwardStep& step : plan.backward)
    for (const std::size_t gradient : steps[step.node].gradients)
      EXPECT_EQ(builder.buffers.last_use(gradient), plan.time_of_backward(step.node)) << step.node;
  builder.buffers.place(64);
  for (const BackwardStep& step : plan.backward) {
    const auto& gradients = steps[step.node].gradients;
    EXPECT_TRUE(gradients.size() < 2 || builder.buffers.offset(gradients[0]) != builder.buffers.offset(gradients[1]));
  }
}

}  // namespace
}  // namespace lockstep::nn
