#include "nn/own_arenas.hpp"

#include <vector>

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

OwnArenas::OwnArenas(Executor& executor, std::span<const float> parameters)
    : parameters_{bytes_on_device(executor.arena_elements() * sizeof(float))},
      gradients_{bytes_on_device(executor.arena_elements() * sizeof(float))},
      weights_{bytes_on_device(executor.weights_bytes())} {
  send_values(parameters, parameters_);
  if (executor.weights_type() == core::DType::bfloat16) send_rounded<core::bfloat16>(parameters, weights_);
  if (executor.weights_type() == core::DType::float16) send_rounded<core::float16>(parameters, weights_);
  executor.bind(parameters_.on_device<float>(), gradients_.on_device<float>(), weights_.on_device<std::byte>());
}

}  // namespace lockstep::nn
