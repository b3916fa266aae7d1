#include "nn/plan/planned_executor.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "core/error.hpp"
#include "runtime/staging.hpp"

namespace lockstep::nn {
namespace {

/// Whether two places have parameters in common.
bool share_memory(std::span<const SlotPlace> places) {
  std::vector<runtime::DeviceSpan<const float>> spans;
  for (const SlotPlace& place : places) spans.push_back(place.parameters);
  std::ranges::sort(spans, std::less<const float*>{}, [](const auto& span) { return span.data(); });
  return std::ranges::adjacent_find(spans, [](const auto& a, const auto& b) {
           return std::greater<const float*>{}(a.data() + a.size(), b.data());
         }) != spans.end();
}

}  // namespace

PlannedExecutor::PlannedExecutor(const Network& network, const ExecutorOptions& options)
    : network_{network}, options_{options}, places_(network.parameters().size()) {
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

void PlannedExecutor::bind(std::span<const SlotPlace> places) {
  core::require(places.size() == slots().size(), "each slot has one place");
  core::require(!std::exchange(is_bound_, true), "an executor is bound once");
  const std::size_t of_weight = weights_type() == core::DType::float32 ? 0 : core::size_of(weights_type());
  runtime::Stream stream;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const ArenaSlot& slot = slots()[i];
    const SlotPlace& place = places_[static_cast<std::size_t>(slot.parameter)] = places[i];
    core::require(place.parameters.size() == slot.slice.count && place.gradients.size() == slot.slice.count &&
                      place.weights.size() == slot.slice.count * of_weight,
                  "a place has the elements of its slot");
    stream.fill(runtime::as_writable_bytes(place.gradients), std::byte{0});  // padding that no layer writes
  }
  stream.wait();
  has_shared_places_ = share_memory(places);
}

void PlannedExecutor::zero_completed(const BackwardStep& step, runtime::Stream& stream) const {
  for (std::size_t i = step.completed.offset; i < step.completed.end(); ++i) {
    const SlotPlace& place = places_[static_cast<std::size_t>(plan_.parameters[i].parameter)];
    stream.fill(runtime::as_writable_bytes(place.gradients), std::byte{0});
  }
}

void PlannedExecutor::check(const data::Batch& batch, bool fits_input) const {
  core::require(is_bound_, "an executor is bound to its places");
  core::require(batch.n <= options_.max_batch, "a batch has at most max_batch samples");
  core::require(fits_input, "the batch's samples have the network's input size");
  core::require(batch.y.size() == batch.n * y_bytes_, "every sample of a batch has a label or target");
  core::require(batch.ids.empty() || batch.ids.size() == batch.n, "every sample of a batch has an id");
}

}  // namespace lockstep::nn
