#include "nn/host/observers.hpp"

#include <algorithm>
#include <cmath>

#include "core/timer.hpp"
#include "nn/host/elements.hpp"

namespace lockstep::nn::host {

void Profile::start() { last_s_ = core::now().value; }

void Profile::stop(double& seconds) {
  const double time_s = core::now().value;
  seconds += time_s - last_s_;
  last_s_ = time_s;
}

ForwardObserver::ForwardObserver(const ExecutorOptions& options, Profile* profile)
    : options_{options}, profile_{profile} {
  if (profile_ != nullptr) profile_->start();
}

void ForwardObserver::after_forward(std::size_t node, const Tensor&, const PassContext&) {
  if (profile_ != nullptr) profile_->stop(profile_->forward_s[node]);
  if (options_.on_progress) options_.on_progress();
}

void Accumulation::keep(std::span<const float> gradient) { kept_.assign(gradient.begin(), gradient.end()); }

void Accumulation::add_to(std::span<float> gradient) const {
  for_parts(gradient.size(), least_elements, [&](std::size_t begin, std::size_t end) {
    loops().floats.add_to(gradient.data() + begin, kept_.data() + begin, end - begin);
  });
}

BackwardObserver::BackwardObserver(const ExecutorOptions& options, std::span<const ArenaSlot> slots,
                                   std::span<float> gradients, Accumulation* accumulation, Profile* profile,
                                   Hooks& hooks)
    : options_{options},
      slots_{slots},
      gradients_{gradients},
      accumulation_{accumulation},
      profile_{profile},
      hooks_{hooks} {
  if (profile_ != nullptr) profile_->start();
}

std::span<float> BackwardObserver::completed_by(const BackwardStep& step) const {
  const auto slots = slots_.subspan(step.completed.offset, step.completed.count);
  if (slots.empty() || std::ranges::count(options_.row_gradients, slots[0].parameter) > 0) return {};
  const std::size_t begin = slots.front().slice.offset;
  return gradients_.subspan(begin, slots.back().slice.end() - begin);
}

void BackwardObserver::before_backward(const BackwardStep& step, std::span<const Tensor>) {
  if (accumulation_ != nullptr) accumulation_->keep(completed_by(step));
}

void BackwardObserver::after_backward(const BackwardStep& step) {
  if (accumulation_ != nullptr) accumulation_->add_to(completed_by(step));
  if (profile_ != nullptr) profile_->stop(profile_->backward_s[step.node]);
  if (options_.on_progress) options_.on_progress();
  for (std::size_t slot = step.completed.offset; slot < step.completed.end(); ++slot) hooks_.ready(slot);
  if (profile_ != nullptr) profile_->start();
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
