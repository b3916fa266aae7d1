#include "unit/nn/cases.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "core/error.hpp"
#include "nn/graph/models.hpp"

namespace lockstep::nn {
namespace {

// Streams of make_golden.py.
constexpr std::uint64_t x_seed = 1000, targets_seed = 1001, ids_seed = 1002, classes_seed = 1003, digest_seed = 777;

// Sebastiano Vigna's splitmix64.
std::uint64_t mix(std::uint64_t seed, std::uint64_t i) {
  std::uint64_t z = (seed << 32) + i + 0x9e37'79b9'7f4a'7c15;
  z = (z ^ (z >> 30)) * 0xbf58'476d'1ce4'e5b9;
  z = (z ^ (z >> 27)) * 0x94d0'49bb'1331'11eb;
  return z ^ (z >> 31);
}

std::vector<double> some_values(std::uint64_t seed, std::uint64_t n) {
  std::vector<double> values(n);
  for (std::uint64_t i = 0; i < n; ++i) values[i] = value(seed, i);
  return values;
}

std::vector<std::int64_t> some_whole(std::uint64_t seed, std::uint64_t n, std::uint64_t bound) {
  std::vector<std::int64_t> values(n);
  for (std::uint64_t i = 0; i < n; ++i) values[i] = static_cast<std::int64_t>(mix(seed, i) % bound);
  return values;
}

/// A case of `n` samples, with targets for mse, else with classes.
Case make_case(std::string name, Network network, std::uint64_t n, Loss loss) {
  Case result{std::move(name), std::move(network)};
  const std::uint64_t n_rows = n_sample_rows(result.network.output());
  const std::uint64_t n_outputs = n_elements(result.network.output()) / n_rows;
  const std::vector<Node>& nodes = result.network.nodes();
  result.batch.n = n;
  if (std::holds_alternative<Ids>(nodes.front().layer)) {
    std::uint64_t bound = ~std::uint64_t{0};
    for (const Node& node : nodes)
      if (const auto* embedding = std::get_if<Embedding>(&node.layer)) bound = std::min(bound, embedding->n_rows);
    result.batch.ids = some_whole(ids_seed, n * nodes.front().output[0], bound);
  } else {
    result.batch.x = some_values(x_seed, n * n_elements(nodes.front().output));
  }
  if (loss == Loss::mse)
    result.batch.targets = some_values(targets_seed, n * n_rows * n_outputs);
  else
    result.batch.classes = some_whole(classes_seed, n * n_rows, n_outputs);
  result.options.loss = loss;
  result.options.keeps = [](int, std::uint64_t sample, std::uint64_t element) {
    return (7 * sample + 13 * element) % 5 != 0;
  };
  return result;
}

Case linear() {
  Network net;
  net.linear("fc", net.input({5}), {.n_out = 3});
  return make_case("linear", net, 4, Loss::mse);
}

Case relu() {
  Network net;
  Value x = net.linear("fc1", net.input({5}), {.n_out = 6, .has_bias = false});
  x = net.relu(x);
  net.linear("fc2", x, {.n_out = 7});
  return make_case("relu", net, 4, Loss::cross_entropy);
}

Case conv() {
  Network net;
  Value x = net.conv("conv1", net.input({3, 7, 6}), {.n_out = 4, .kernel = 3, .stride = 2, .padding = 1});
  x = net.conv("conv2", x, {.n_out = 5, .kernel = 1, .has_bias = false});
  net.linear("fc", net.flatten(x), {.n_out = 3});
  Case result = make_case("conv", net, 3, Loss::cross_entropy);
  result.options.label_smoothing = 0.1;
  return result;
}

Case global_avg_pool() {
  Network net;
  const Value x = net.input({2, 6, 9});
  net.global_avg_pool(net.conv("conv1", x, {.n_out = 3, .kernel = 5, .padding = 2, .has_bias = false}));
  return make_case("global_avg_pool", net, 2, Loss::cross_entropy);
}

Case batch_norm() {
  Network net;
  const Value x = net.batch_norm("bn1", net.input({2, 3, 4}), {.has_relu = true});
  net.linear("fc", net.flatten(x), {.n_out = 2});
  Case result = make_case("batch_norm", net, 5, Loss::mse);
  result.options.bn_group = 2;
  return result;
}

Case batch_norm_plain() {
  Network net;
  const Value x = net.batch_norm("bn1", net.input({3, 2, 2}), {.eps = 1e-3, .momentum = 0.3});
  net.linear("fc", net.flatten(x), {.n_out = 2});
  return make_case("batch_norm_plain", net, 4, Loss::mse);
}

Case max_pool() {
  Network net;
  const Value x = net.max_pool(net.input({1, 5, 4}), {.kernel = 2, .stride = 2});
  net.linear("fc", net.flatten(x), {.n_out = 2});
  return make_case("max_pool", net, 3, Loss::mse);
}

Case max_pool_overlapping() {
  Network net;
  const Value x = net.max_pool(net.relu(net.input({2, 7, 7})), {.kernel = 3, .stride = 2, .padding = 1});
  net.linear("fc", net.flatten(x), {.n_out = 2});
  return make_case("max_pool_overlapping", net, 3, Loss::mse);
}

// Among several greatest elements, the first gets the gradient.
Case max_pool_ties() {
  Network net;
  const Value x = net.max_pool(net.input({2, 7, 7}), {.kernel = 3, .stride = 2, .padding = 1});
  net.linear("fc", net.flatten(x), {.n_out = 2});
  Case result = make_case("max_pool_ties", net, 3, Loss::mse);
  for (double& value : result.batch.x) value = std::nearbyint(2 * value);
  return result;
}

Case dropout() {
  Network net;
  net.linear("fc", net.dropout(net.input({8}), {.probability = 0.25}), {.n_out = 2});
  return make_case("dropout", net, 3, Loss::mse);
}

Case residual() {
  Network net;
  const Value x = net.input({3, 4, 4});
  Value y = net.conv("conv1", x, {.n_out = 3, .kernel = 3, .padding = 1, .has_bias = false});
  y = net.add(net.batch_norm("bn1", y), x, {.has_relu = true});
  y = net.add(net.conv("conv2", y, {.n_out = 3, .kernel = 1}), y);
  net.global_avg_pool(y);
  return make_case("residual", net, 3, Loss::cross_entropy);
}

Case log_softmax() {
  Network net;
  net.log_softmax(net.linear("fc", net.input({5}), {.n_out = 4}));
  return make_case("log_softmax", net, 3, Loss::nll);
}

Case layer_norm() {
  Network net;
  const Value x = net.append("ln", LayerNorm{}, {net.linear("fc1", net.input({5}), {.n_out = 17})});
  net.linear("fc2", x, {.n_out = 5});
  return make_case("layer_norm", net, 4, Loss::mse);
}

Case rows() {
  Network net;
  const Value x = net.input({3, 5});
  Value y = net.linear("fc1", net.append("ln", LayerNorm{}, {x}), {.n_out = 6});
  y = net.linear("fc2", net.dropout(net.relu(y), {.probability = 0.25}), {.n_out = 5});
  net.linear("fc3", net.add(y, x), {.n_out = 4, .has_bias = false});
  return make_case("rows", net, 4, Loss::mse);
}

Case rows_of_classes() {
  Network net;
  net.linear("fc2", net.relu(net.linear("fc1", net.input({4, 5}), {.n_out = 9})), {.n_out = 7});
  Case result = make_case("rows_of_classes", net, 3, Loss::cross_entropy);
  result.options.label_smoothing = 0.1;
  return result;
}

Case rows_of_log_softmax() {
  Network net;
  net.log_softmax(net.linear("fc", net.input({2, 5}), {.n_out = 6}));
  return make_case("rows_of_log_softmax", net, 3, Loss::nll);
}

Case embedding() {
  Network net;
  const Value ids = net.ids(2);
  const Value left = net.embedding("left", ids, {.n_rows = 4, .width = 3, .column = 1});
  const Value right = net.embedding("right", ids, {.n_rows = 5, .width = 2, .column = 0});
  net.linear("fc", net.concat({left, right}), {.n_out = 1});
  return make_case("embedding", net, 6, Loss::mse);
}

Case tokens() {
  Network net;
  const Value x = net.embedding("wte", net.ids(4), {.n_rows = 7, .width = 5, .column = std::nullopt});
  net.linear("fc", net.append("ln", LayerNorm{}, {x}), {.n_out = 6});
  return make_case("tokens", net, 3, Loss::cross_entropy);
}

Case tied() {
  Network net;
  const Value wte = net.embedding("wte", net.ids(4), {.n_rows = 9, .width = 5, .column = std::nullopt});
  const Value x = net.linear("fc", net.append("ln", LayerNorm{}, {wte}), {.n_out = 5});
  net.linear("head", net.relu(x), {.n_out = 9, .has_bias = false}, wte);
  return make_case("tied", net, 3, Loss::cross_entropy);
}

}  // namespace

std::vector<Case> layer_cases() {
  return {linear(),
          relu(),
          conv(),
          global_avg_pool(),
          batch_norm(),
          batch_norm_plain(),
          max_pool(),
          max_pool_overlapping(),
          max_pool_ties(),
          dropout(),
          residual(),
          embedding(),
          log_softmax(),
          layer_norm(),
          rows(),
          rows_of_classes(),
          rows_of_log_softmax(),
          tokens(),
          tied()};
}

std::vector<Case> model_cases() {
  std::vector<Case> cases;
  const auto add = [&](const std::string& name, const ModelSpec& spec, std::uint64_t n, Loss loss) -> Case& {
    return cases.emplace_back(make_case(name, make_model(spec), n, loss));
  };
  add("toy", {.name = "toy", .input = {20}, .n_outputs = 1}, 8, Loss::mse);
  add("mnist_cnn", {.name = "mnist_cnn", .input = {1, 10, 10}, .n_outputs = 10}, 4, Loss::cross_entropy);
  add("mnist_cnn_nll", {.name = "mnist_cnn", .input = {1, 10, 10}, .n_outputs = 10, .has_log_softmax = true}, 4,
      Loss::nll);
  Case& cifar = add("resnet18_cifar", {.name = "resnet18", .input = {3, 9, 9}, .n_outputs = 10, .cifar_stem = true}, 4,
                    Loss::cross_entropy);
  cifar.options.label_smoothing = 0.1;
  cifar.options.bn_group = 2;
  add("resnet50", {.name = "resnet50", .input = {3, 17, 17}, .n_outputs = 12}, 4, Loss::cross_entropy);
  add("movielens", {.name = "movielens", .n_outputs = 1, .n_ids = {6, 9}}, 16, Loss::mse);
  return cases;
}

double value(std::uint64_t seed, std::uint64_t i) { return static_cast<double>(mix(seed, i) >> 11) * 0x1p-52 - 1; }

std::vector<double> parameter_values(const Network& network, std::size_t index) {
  const Parameter& parameter = network.parameters().at(index);
  const std::uint64_t n = n_elements(parameter.shape);
  std::vector<double> values = some_values(index + 1, n);
  const bool is_matrix = parameter.shape.size() > 1;
  const std::uint64_t fan_in = n / parameter.shape[0];
  const double scale = is_matrix ? std::sqrt(3 / static_cast<double>(fan_in)) : 0.25;
  const double center = !is_matrix && parameter.name.ends_with("weight") ? 1 : 0;
  for (double& element : values) element = center + scale * element;
  return values;
}

std::map<std::string, std::vector<double>> read_golden(const std::string& file) {
  std::ifstream stream{std::filesystem::path{__FILE__}.parent_path() / "golden" / file};
  std::map<std::string, std::vector<double>> golden;
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream words{line};
    std::string key, label;
    words >> key >> label;
    std::vector<double>& values = golden[key.append(" ").append(label)];
    for (double element = 0; words >> element;) values.push_back(element);
  }
  core::require(!golden.empty(), "golden files are there");
  return golden;
}

std::vector<double> digest_of(const std::vector<double>& values) {
  double magnitude = 0, weighted = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    magnitude += std::abs(values[i]);
    weighted += values[i] * value(digest_seed, i);
  }
  return {magnitude, weighted};
}

}  // namespace lockstep::nn
