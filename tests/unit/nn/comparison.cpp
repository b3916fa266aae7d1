#include "unit/nn/comparison.hpp"

#include <string>
#include <utility>

#include "core/dtype.hpp"
#include "core/rng.hpp"

namespace lockstep::nn {

ExecutorOptions options_of(const Case& given, Precision precision) {
  ExecutorOptions options;
  options.precision = precision;
  options.max_batch = given.batch.n;
  options.bn_group = given.options.bn_group;
  options.loss = given.options.loss;
  options.label_smoothing = given.options.label_smoothing;
  options.seed = 0x1234'5678'9abc'def0;
  return options;
}

std::vector<Placed> place_with_gaps(std::span<const Unplaced> parameters) {
  std::vector<Placed> places(parameters.size());
  std::string block;  // of the last unit
  std::size_t at = 0, n_units = 0;
  for (const bool is_vector : {false, true}) {
    const std::size_t multiple = is_vector ? slot_multiple : 1024;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (parameters[i].is_vector != is_vector) continue;
      places[i].slice = {(at + multiple - 1) / multiple * multiple, parameters[i].n_elements};
      at = places[i].slice.end();
      if (is_vector) continue;
      const std::string of_block = parameters[i].is_shared ? "" : parameters[i].unit;
      if (of_block.empty() || of_block != block) ++n_units;
      places[i].unit = n_units - 1;
      block = of_block;
    }
  }
  return places;
}

std::vector<WalkCase> walk_cases() {
  const auto each_after_the_other = [](Case given, std::size_t n_units) {
    WalkCase one{.given = std::move(given)};
    for (std::size_t i = 0; i < n_units; ++i) {
      const std::string back = std::to_string(i), forth = std::to_string(n_units - 1 - i);
      one.forward += "+" + forth + " -" + forth + " ";
      one.backward += "+" + back + " -" + back + " ";
    }
    return one;
  };
  std::vector<WalkCase> cases;
  for (const Case& given : layer_cases())
    if (given.name == "tied") cases.push_back({given, "+1 +0 -0 -1 ", "+1 +0 -0 -1 "});
  for (const Case& given : model_cases()) {
    if (given.name == "toy") cases.push_back(each_after_the_other(given, 1));
    if (given.name == "movielens") cases.push_back(each_after_the_other(given, 3));
    if (given.name == "mnist_cnn") cases.push_back(each_after_the_other(given, 4));
    if (given.name != "resnet18_cifar") continue;
    cases.push_back(each_after_the_other(given, 10));
    cases.back().fewest = given.options.bn_group;
  }
  return cases;
}

std::vector<float> to_precision(const std::vector<double>& exact, Precision precision) {
  std::vector<float> rounded(exact.begin(), exact.end());
  if (precision == Precision::bf16)
    for (float& value : rounded) value = static_cast<float>(core::bfloat16{value});
  if (precision == Precision::f16)
    for (float& value : rounded) value = static_cast<float>(core::float16{value});
  return rounded;
}

bool keeps(std::uint64_t seed, std::uint64_t epoch, int node, std::uint64_t id, std::uint64_t element,
           double probability) {
  const auto low = [](std::uint64_t v) { return static_cast<std::uint32_t>(v); };
  const auto key = core::philox({low(seed), low(seed >> 32)}, {low(epoch), low(epoch >> 32), 0x64726f70, 0});
  const auto block =
      core::philox({key[0], key[1]}, {low(element / 4), static_cast<std::uint32_t>(node), low(id), low(id >> 32)});
  return static_cast<double>(block[element % 4]) >= std::floor(probability * 0x1p32);
}

}  // namespace lockstep::nn
