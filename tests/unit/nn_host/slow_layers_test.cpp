#include <gtest/gtest.h>

#include "nn/host/layers.hpp"
#include "unit/nn_host/harness.hpp"

namespace lockstep::nn::host {
namespace {

/// A convolution of 32 channels, from one layout to another.
auto describe(const dnnl::engine& engine, dnnl::memory::format_tag from, dnnl::memory::format_tag to) {
  const auto images = [](dnnl::memory::format_tag tag) {
    return Desc{{2, 32, 8, 8}, dnnl::memory::data_type::f32, tag};
  };
  const Desc weights{{32, 32, 3, 3}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::any};
  return describe_conv(engine, images(from), weights, {}, images(to), {{3, 3}, {1, 1}, {1, 1}, {1, 1}});
}

const dnnl::engine engine{dnnl::engine::kind::cpu, 0};
const auto slow = describe(engine, dnnl::memory::format_tag::abcd, dnnl::memory::format_tag::aBcd8b);
const auto fast = describe(engine, dnnl::memory::format_tag::abcd, dnnl::memory::format_tag::abcd);

TEST(HostSlowLayers, AreToldByTheNameOfTheirCode) {
  EXPECT_TRUE(is_reference(slow));
  EXPECT_FALSE(is_reference(fast));
}

TEST(HostSlowLayers, AreNotedWithTheirPass) {
  const Case given = make_case(image_network(3), 2, Loss::cross_entropy);
  const ExecutorOptions options = options_of(given);
  ParameterLayout parameters{given.network};
  Statistics statistics;
  Choices choices;
  SlowLayers slow_layers;
  Storage storage{engine, {}};
  const PassPlan plan = plan_pass(given.network);
  Builder builder{
      {given.network, options, plan, engine, parameters, {}, statistics, choices, slow_layers}, storage, 2, true};
  static_cast<void>(builder.primitive(fast, {}));
  EXPECT_EQ(slow_layers, SlowLayers{});
  static_cast<void>(builder.primitive(slow, {}));
  static_cast<void>(builder.primitive(slow, {}));
  builder.time = plan.time_of_backward(1);
  static_cast<void>(builder.primitive(slow, {}));
  const std::string code = slow.impl_info_str();
  EXPECT_EQ(slow_layers, (SlowLayers{given.network.nodes()[0].name + " (forward, " + code + ")",
                                     given.network.nodes()[1].name + " (backward, " + code + ")"}));
}

TEST(HostSlowLayers, AreNoneOfAnyModel) {
  for (const Case& given : model_cases())
    for (const Precision precision : precisions())
      EXPECT_EQ(HostExecutor(given.network, options_of(given, precision)).slow_layers(), std::vector<std::string>{})
          << given.name;
}

// Also with few channels, and with no more than oneDNN pads to.
TEST(HostSlowLayers, AreNoneOfAnyNumberOfChannels) {
  for (const std::uint64_t n_channels : {1u, 2u, 3u, 5u, 16u, 17u}) {
    const Case given = make_case(image_network(n_channels), 4, Loss::cross_entropy);
    EXPECT_EQ(HostExecutor(given.network, options_of(given)).slow_layers(), std::vector<std::string>{}) << n_channels;
  }
}

}  // namespace
}  // namespace lockstep::nn::host
