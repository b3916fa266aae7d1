#include <gtest/gtest.h>

#include "nn/host/kernel.hpp"
#include "unit/nn_host/harness.hpp"

namespace lockstep::nn::host {
namespace {

/// Of 32 channels, from one layout to another.
bool is_slow(dnnl::memory::format_tag from, dnnl::memory::format_tag to) {
  const dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  const auto images = [](dnnl::memory::format_tag tag) {
    return Desc{{2, 32, 8, 8}, dnnl::memory::data_type::f32, tag};
  };
  const Desc weights{{32, 32, 3, 3}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::any};
  return is_reference(describe_conv(engine, images(from), weights, {}, images(to), {{3, 3}, {1, 1}, {1, 1}, {1, 1}}));
}

TEST(HostSlowLayers, AreToldByTheNameOfTheirCode) {
  using Tag = dnnl::memory::format_tag;
  EXPECT_TRUE(is_slow(Tag::abcd, Tag::aBcd8b));
  EXPECT_FALSE(is_slow(Tag::abcd, Tag::abcd));
}

TEST(HostSlowLayers, AreNoneOfAnyModel) {
  for (const Case& given : model_cases())
    for (const Precision precision : precisions())
      EXPECT_EQ(HostExecutor(given.network, options_of(given, precision)).slow_layers(), std::vector<std::string>{})
          << given.name;
}

// With few channels too, and with no more than oneDNN pads to.
TEST(HostSlowLayers, AreNoneOfAnyNumberOfChannels) {
  for (const std::uint64_t n_channels : {1u, 2u, 3u, 5u, 16u, 17u}) {
    const Case given = make_case(image_network(n_channels), 4, Loss::cross_entropy);
    EXPECT_EQ(HostExecutor(given.network, options_of(given)).slow_layers(), std::vector<std::string>{}) << n_channels;
  }
}

}  // namespace
}  // namespace lockstep::nn::host
