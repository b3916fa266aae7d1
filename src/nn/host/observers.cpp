#include "nn/host/observers.hpp"

#include <algorithm>
#include <cmath>

#include "nn/host/elements.hpp"

namespace lockstep::nn::host {

void Accumulation::begin() {
  kept_.clear();
  n_added_ = 0;
}

void Accumulation::keep(std::span<const float> gradient) {
  kept_.insert(kept_.end(), gradient.begin(), gradient.end());
}

void Accumulation::add_to(std::span<float> gradient) {
  const float* const kept = kept_.data() + n_added_;
  for_parts(gradient.size(), least_elements, [&](std::size_t begin, std::size_t end) {
    loops().floats.add_to(gradient.data() + begin, kept + begin, end - begin);
  });
  n_added_ += gradient.size();
}

PassReporter::PassReporter(const ExecutorOptions& options, const ParameterSlots& slots,
                           std::span<const SlotPlace> places, Accumulation* accumulation, LayerTimes& times,
                           runtime::Stream& stream, Hooks& hooks)
    : options_{options},
      slots_{slots},
      places_{places},
      accumulation_{accumulation},
      times_{times},
      stream_{stream},
      hooks_{hooks} {}

void PassReporter::after_forward(std::size_t node, const Tensor&, const PassContext&) {
  times_.forward_done(stream_, node);
  if (options_.on_progress) options_.on_progress();
}

template <class F>
void PassReporter::for_written(const BackwardStep& step, const F& f) const {
  if (accumulation_ == nullptr) return;
  for (const std::size_t planned : step.written) {
    const int parameter = slots_.of_planned(planned).parameter;
    if (std::ranges::count(options_.row_gradients, parameter) == 0)
      f(runtime::on_host(places_[static_cast<std::size_t>(parameter)].gradients));
  }
}

void PassReporter::before_backward(const BackwardStep& step, std::span<const Tensor>) {
  if (accumulation_ != nullptr) accumulation_->begin();
  for_written(step, [&](std::span<float> gradient) { accumulation_->keep(gradient); });
}

void PassReporter::after_backward(const BackwardStep& step) {
  for_written(step, [&](std::span<float> gradient) { accumulation_->add_to(gradient); });
  times_.backward_done(stream_, step.node);
  if (options_.on_progress) options_.on_progress();
  const core::Slice ready = slots_.reported_after(step.completed);
  for (std::size_t slot = ready.offset; slot < ready.end(); ++slot) hooks_.ready(slot);
  times_.begin(stream_);
}

void FinitenessObserver::after_forward(std::size_t node, const Tensor& output, const PassContext& pass) {
  if (node > 0) check(node, output);  // the first is the input
  if (!found_ && !pass.is_finite) found_ = node;
}

void FinitenessObserver::before_backward(const BackwardStep& step, std::span<const Tensor> gradients) {
  for (const Tensor& gradient : gradients) check(step.node, gradient);
}

void FinitenessObserver::check(std::size_t node, const Tensor& tensor) {
  if (found_ || tensor.place.space != Space::arena) return;
  const bool is_finite = with_type(tensor, [&]<class T>(T) {
    const std::span<const T> values{storage_.at<const T>(tensor.place), n_physical(tensor.desc)};
    return std::all_of(values.begin(), values.end(), [](T value) { return std::isfinite(static_cast<float>(value)); });
  });
  if (!is_finite) found_ = node;
}

}  // namespace lockstep::nn::host
