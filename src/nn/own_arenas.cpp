#include "nn/own_arenas.hpp"

#include "core/error.hpp"
#include "runtime/staging.hpp"

namespace lockstep::nn {
namespace {

runtime::Buffer bytes_on_device(std::size_t n_bytes) {
  return runtime::Buffer{core::Bytes{n_bytes}, runtime::Memory::device};
}

template <class T>
void send_values(std::span<const T> values, const runtime::Buffer& to) {
  runtime::Staging{}.send(std::as_bytes(values), to.on_device<std::byte>().subspan(0, values.size_bytes()));
}

template <class T>
void send_rounded(std::span<const float> values, const runtime::Buffer& to) {
  std::vector<T> rounded;
  rounded.reserve(values.size());
  for (const float value : values) rounded.emplace_back(value);
  send_values(std::span<const T>{rounded}, to);
}

}  // namespace

std::vector<SlotPlace> places_in(const Executor& executor, runtime::DeviceSpan<const float> parameters,
                                 runtime::DeviceSpan<float> gradients, runtime::DeviceSpan<const std::byte> weights) {
  core::require(parameters.size() == executor.arena_elements() && gradients.size() == executor.arena_elements() &&
                    weights.size() == executor.weights_bytes(),
                "arenas have arena_elements() elements");
  const std::size_t of_weight = weights.size() == 0 ? 0 : core::size_of(executor.weights_type());
  std::vector<SlotPlace> places;
  for (const ArenaSlot& slot : executor.slots()) {
    const auto& [offset, n] = slot.slice;
    places.push_back({.parameters = parameters.subspan(offset, n),
                      .gradients = gradients.subspan(offset, n),
                      .weights = weights.subspan(offset * of_weight, n * of_weight)});
  }
  return places;
}

OwnArenas::OwnArenas(Executor& executor, std::span<const float> parameters)
    : parameters_{bytes_on_device(executor.arena_elements() * sizeof(float))},
      gradients_{bytes_on_device(executor.arena_elements() * sizeof(float))},
      weights_{bytes_on_device(executor.weights_bytes())} {
  send_values(parameters, parameters_);
  if (executor.weights_type() == core::DType::bfloat16) send_rounded<core::bfloat16>(parameters, weights_);
  if (executor.weights_type() == core::DType::float16) send_rounded<core::float16>(parameters, weights_);
  executor.bind(places_in(executor, parameters_.on_device<float>(), gradients_.on_device<float>(),
                          weights_.on_device<std::byte>()));
}

}  // namespace lockstep::nn
