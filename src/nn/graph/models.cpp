#include "nn/graph/models.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.hpp"
#include "core/flags.hpp"

namespace lockstep::nn {
namespace {

/// torch.nn.Linear, as in the "DDP tutorial series".
Network toy(const ModelSpec& spec) {
  Network net;
  const Value x = net.input(spec.input, {.is_pixels = spec.takes_pixels});
  net.linear("", x, {.n_out = spec.n_outputs});
  return net;
}

/// pytorch/examples mnist: Net.
Network mnist_cnn(const ModelSpec& spec) {
  Network net;
  Value x = net.input(spec.input, {.is_pixels = spec.takes_pixels});
  x = net.conv("conv1", x, {.n_out = 32, .kernel = 3});
  x = net.relu(x);
  x = net.conv("conv2", x, {.n_out = 64, .kernel = 3});
  x = net.relu(x);
  x = net.max_pool(x, {.kernel = 2, .stride = 2});
  if (spec.has_dropout) x = net.dropout(x, {.probability = 0.25}, "dropout1");
  x = net.flatten(x);
  x = net.linear("fc1", x, {.n_out = 128});
  x = net.relu(x);
  if (spec.has_dropout) x = net.dropout(x, {.probability = 0.5}, "dropout2");
  net.linear("fc2", x, {.n_out = spec.n_outputs});
  return net;
}

constexpr BatchNorm with_relu{.has_relu = true};
constexpr BatchNorm without_relu{};

/// A convolution and its batch normalization, with torchvision's two names.
Value conv_bn(Network& net, const std::string& conv, const std::string& bn, Value x, Conv layer, BatchNorm norm) {
  layer.has_bias = false;
  x = net.conv(conv, x, layer, Init::kaiming_normal_fan_out);
  return net.batch_norm(bn, x, norm);
}

/// The shortcut of a block: its input, converted to the result's shape if they differ.
Value shortcut(Network& net, Value x, std::uint64_t n_out, std::uint64_t stride) {
  if (stride == 1 && net.shape(x)[0] == n_out) return x;
  return conv_bn(net, "downsample.0", "downsample.1", x, {.n_out = n_out, .kernel = 1, .stride = stride}, without_relu);
}

/// torchvision BasicBlock.
Value basic_block(Network& net, Value x, std::uint64_t width, std::uint64_t stride) {
  Value y = conv_bn(net, "conv1", "bn1", x, {.n_out = width, .kernel = 3, .stride = stride, .padding = 1}, with_relu);
  y = conv_bn(net, "conv2", "bn2", y, {.n_out = width, .kernel = 3, .padding = 1}, without_relu);
  return net.add(y, shortcut(net, x, width, stride), {.has_relu = true}, "add");
}

/// torchvision Bottleneck: the stride is that of the 3x3 convolution ("ResNet v1.5").
Value bottleneck(Network& net, Value x, std::uint64_t width, std::uint64_t stride) {
  const std::uint64_t n_out = 4 * width;
  Value y = conv_bn(net, "conv1", "bn1", x, {.n_out = width, .kernel = 1}, with_relu);
  y = conv_bn(net, "conv2", "bn2", y, {.n_out = width, .kernel = 3, .stride = stride, .padding = 1}, with_relu);
  y = conv_bn(net, "conv3", "bn3", y, {.n_out = n_out, .kernel = 1}, without_relu);
  return net.add(y, shortcut(net, x, n_out, stride), {.has_relu = true}, "add");
}

struct ResNet {
  Value (*block)(Network&, Value, std::uint64_t width, std::uint64_t stride);
  std::array<int, 4> n_blocks;  ///< in each stage
};

/// torchvision ResNet, with the CIFAR stem of the FSDP tutorial if requested.
Network make_resnet(const ModelSpec& spec, const ResNet& resnet) {
  Network net;
  Value x = net.input(spec.input, {.is_pixels = spec.takes_pixels});
  if (spec.cifar_stem) {
    x = conv_bn(net, "conv1", "bn1", x, {.n_out = 64, .kernel = 3, .stride = 1, .padding = 1}, with_relu);
  } else {
    x = conv_bn(net, "conv1", "bn1", x, {.n_out = 64, .kernel = 7, .stride = 2, .padding = 3}, with_relu);
    x = net.max_pool(x, {.kernel = 3, .stride = 2, .padding = 1}, "maxpool");
  }
  std::uint64_t width = 64;
  for (std::size_t stage = 0; stage < resnet.n_blocks.size(); ++stage, width *= 2) {
    const int n_blocks =
        spec.most_blocks > 0 ? std::min(spec.most_blocks, resnet.n_blocks[stage]) : resnet.n_blocks[stage];
    for (int i = 0; i < n_blocks; ++i) {
      const NameScope scope = net.unit(fmt::format("layer{}.{}", stage + 1, i));
      const std::uint64_t stride = stage > 0 && i == 0 ? 2 : 1;
      x = resnet.block(net, x, width, stride);
    }
  }
  x = net.global_avg_pool(x, "avgpool");
  net.linear("fc", x, {.n_out = spec.n_outputs});
  return net;
}

Network resnet18(const ModelSpec& spec) { return make_resnet(spec, {basic_block, {2, 2, 2, 2}}); }
Network resnet34(const ModelSpec& spec) { return make_resnet(spec, {basic_block, {3, 4, 6, 3}}); }
Network resnet50(const ModelSpec& spec) { return make_resnet(spec, {bottleneck, {3, 4, 6, 3}}); }
Network resnet101(const ModelSpec& spec) { return make_resnet(spec, {bottleneck, {3, 4, 23, 3}}); }
Network resnet152(const ModelSpec& spec) { return make_resnet(spec, {bottleneck, {3, 8, 36, 3}}); }

/// The recommendation tutorial's NeuralRecSys.
Network movielens(const ModelSpec& spec) {
  if (spec.n_ids.size() != 2) {
    core::fail_usage({.what = fmt::format("samples of {} ids", spec.n_ids.size()),
                      .where = "model 'movielens'",
                      .expected = "two ids per sample, a user and an item"});
  }
  const std::uint64_t n_users = spec.n_ids[0], n_items = spec.n_ids[1];
  Network net;
  const Value ids = net.ids(2);
  const Value user = net.embedding("user_factors", ids, {n_users, embedding_width(n_users), 0});
  const Value item = net.embedding("item_factors", ids, {n_items, embedding_width(n_items), 1});
  const Value x = net.concat({user, item});
  net.linear("lin", x, {.n_out = spec.n_outputs});
  return net;
}

constexpr std::array<ModelInfo, 8> all_models{{
    {"toy", toy},
    {"mnist_cnn", mnist_cnn},
    {"resnet18", resnet18, false, true},
    {"resnet34", resnet34, false, true},
    {"resnet50", resnet50, false, true},
    {"resnet101", resnet101, false, true},
    {"resnet152", resnet152, false, true},
    {"movielens", movielens, true},
}};

}  // namespace

const ModelInfo& find_model(std::string_view name) { return core::find_named(all_models, name, "model", ""); }

Network make_model(const ModelSpec& spec) {
  const ModelInfo& model = find_model(spec.name);
  const std::string where = fmt::format("model '{}'", spec.name);
  if (!spec.n_ids.empty() && !model.takes_ids)
    core::fail_usage({.what = "samples are ids", .where = where, .expected = "samples of numbers"});
  if (spec.cifar_stem && !model.has_stems)
    core::fail_usage({.what = "this model has no CIFAR stem", .where = where, .expected = "a ResNet"});
  if (spec.input.size() == 2)  // models that take rows of features are not among them
    core::fail_usage({.what = fmt::format("samples of shape '{}'", to_string(spec.input)),
                      .where = "layer 'input'",
                      .expected = "features, or channels x height x width"});
  Network net = model.make(spec);
  if (spec.has_log_softmax) net.log_softmax({static_cast<int>(net.nodes().size() - 1)});
  return net;
}

std::uint64_t embedding_width(std::uint64_t n_rows) noexcept {
  return std::min<std::uint64_t>(
      600, static_cast<std::uint64_t>(std::llrint(1.6 * std::pow(static_cast<double>(n_rows), 0.56))));
}

}  // namespace lockstep::nn
