// The tensors of a checkpoint.
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "checkpoint/tensors.hpp"
#include "parallel/lanes.hpp"

namespace lockstep::checkpoint {
namespace {

constexpr std::string_view parameter_prefix = "parameter/", statistic_prefix = "statistic/";

/// What the checkpoint says about its weights.
WeightsInfo info_of(const Checkpoint& from) {
  const nlohmann::json content = nlohmann::json::parse(from.content()), nothing = nlohmann::json::object();
  const nlohmann::json recipe = content.value("recipe", nothing), state = content.value("state", nothing);
  const bool is_within_epoch = state.value("of_epoch", nothing).value("steps", std::uint64_t{0}) > 0;
  return {.model = recipe.value("model", std::string{}),
          .epoch = state.value("epoch", std::uint64_t{0}) + (is_within_epoch ? 1 : 0),
          .samples_seen = state.value("samples_seen", std::uint64_t{0})};
}

/// Averages each channel over lanes; `values` are by lane.
void average_lanes(std::span<const float> values, std::span<float> means) {
  std::vector<double> lanes(values.size() / means.size());
  for (std::size_t channel = 0; channel < means.size(); ++channel) {
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) lanes[lane] = values[lane * means.size() + channel];
    means[channel] = static_cast<float>(parallel::sum_lanes(lanes) / static_cast<double>(lanes.size()));
  }
}

/// A tensor of a checkpoint, and its name elsewhere.
struct Renamed {
  Box box{};
  StoredTensor tensor{};
  bool is_by_lane = false;
};

Renamed renamed(Box box) {
  Renamed one{.tensor = {{box.tensor, box.shape}, core::DType::float32}};
  TensorSpec& spec = one.tensor.spec;
  one.is_by_lane = box.tensor.starts_with(statistic_prefix) && box.shape.size() == 2 && box.shape.front() > 0;
  if (one.is_by_lane) {
    spec = {box.tensor.substr(statistic_prefix.size()), {box.shape.back()}};
  } else if (box.tensor.starts_with(parameter_prefix)) {
    spec.name.erase(0, parameter_prefix.size());
  }
  one.box = std::move(box);
  return one;
}

TensorSource make_source(const Checkpoint& from, std::vector<Renamed> all) {
  std::ranges::sort(all, {}, [](const Renamed& one) { return one.tensor.spec.name; });
  TensorSource source{.path = from.path(), .info = info_of(from)};
  for (const Renamed& one : all) source.tensors.push_back(one.tensor);
  source.read = [from, all = std::move(all)](std::size_t i, std::span<float> values) {
    const Renamed& one = all.at(i);
    if (!one.is_by_lane) return from.read(one.box, values);
    std::vector<float> by_lane(one.box.n_elements());
    from.read(one.box, by_lane);
    average_lanes(by_lane, values);
  };
  return source;
}

}  // namespace

TensorSource all_tensors(const Checkpoint& from) {
  std::vector<Renamed> all;
  for (Box& box : from.tensors()) {
    StoredTensor tensor{{box.tensor, box.shape}, core::DType::float32};
    all.push_back({.box = std::move(box), .tensor = std::move(tensor)});
  }
  return make_source(from, std::move(all));
}

TensorSource weights_of(const Checkpoint& from) {
  std::vector<Renamed> all;
  for (Box& box : from.tensors()) all.push_back(renamed(std::move(box)));
  return make_source(from, std::move(all));
}

}  // namespace lockstep::checkpoint
