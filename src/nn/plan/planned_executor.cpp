#include "nn/plan/planned_executor.hpp"

#include <utility>

#include "core/error.hpp"

namespace lockstep::nn {

PlannedExecutor::PlannedExecutor(const Network& network, const ExecutorOptions& options)
    : network_{network}, options_{options} {
  core::require(options.max_batch > 0, "max_batch is positive");
  const Node& first = network_.nodes().front();
  const auto* const input = std::get_if<Input>(&first.layer);
  has_ids_ = std::holds_alternative<Ids>(first.layer);
  has_pixels_ = input != nullptr && input->is_pixels;
  const std::size_t of_number = has_pixels_ ? sizeof(std::uint8_t) : sizeof(float);
  x_bytes_ = n_elements(first.output) * (has_ids_ ? sizeof(std::int64_t) : of_number);
  y_bytes_ = options.loss == Loss::mse ? n_elements(network_.output()) * sizeof(float)
                                       : n_sample_rows(network_.output()) * sizeof(std::int64_t);
}

void PlannedExecutor::bind(runtime::DeviceSpan<const float> parameters, runtime::DeviceSpan<float> gradients,
                           runtime::DeviceSpan<const std::byte> weights) {
  core::require(parameters.size() == arena_elements() && gradients.size() == arena_elements() &&
                    weights.size() == weights_bytes(),
                "arenas have arena_elements() elements");
  core::require(!std::exchange(is_bound_, true), "an executor is bound once");
  runtime::Stream stream;  // padding that no layer writes
  auto* const bytes = reinterpret_cast<std::byte*>(gradients.data());
  stream.fill(runtime::DeviceSpan<std::byte>::at(bytes, gradients.size() * sizeof(float)), std::byte{0});
  stream.wait();
  set_arenas(parameters, gradients, weights);
}

void PlannedExecutor::check(const data::Batch& batch, bool fits_input) const {
  core::require(is_bound_, "an executor is bound to its arenas");
  core::require(batch.n <= options_.max_batch, "a batch has at most max_batch samples");
  core::require(fits_input, "the batch's samples have the network's input size");
  core::require(batch.y.size() == batch.n * y_bytes_, "every sample of a batch has a label or target");
  core::require(batch.ids.empty() || batch.ids.size() == batch.n, "every sample of a batch has an id");
}

}  // namespace lockstep::nn
