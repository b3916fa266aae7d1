// Observers of a pass: they time layers, accumulate and report gradients, and find values that are not finite.
// Invariant: observers change no result of a layer.
// Used by nn/host/host_executor.
#pragma once

#include <optional>
#include <vector>

#include "nn/host/program.hpp"
#include "nn/layer_times.hpp"

namespace lockstep::nn::host {

/// Keeps the gradients of one node while the node computes more, which are then added.
class Accumulation {
 public:
  void begin();
  void keep(std::span<const float> gradient);
  /// Called as often as keep() since begin(), with the same gradients.
  void add_to(std::span<float> gradient);

 private:
  std::vector<float> kept_{};
  std::size_t n_added_ = 0;  ///< elements
};

/// Times nodes, and reports slots when they and all before them are complete.
class PassReporter final : public PassObserver {
 public:
  /// `places`: by parameter. `accumulation` may be null.
  PassReporter(const ExecutorOptions& options, const ParameterSlots& slots, std::span<const SlotPlace> places,
               Accumulation* accumulation, LayerTimes& times, runtime::Stream& stream, Hooks& hooks);
  void after_forward(std::size_t node, const Tensor& output, const PassContext& pass) override;
  void before_backward(const BackwardStep& step, std::span<const Tensor> gradients) override;
  void after_backward(const BackwardStep& step) override;

 private:
  /// Calls f(gradient) for the slots that the step writes.
  template <class F>
  void for_written(const BackwardStep& step, const F& f) const;

  const ExecutorOptions& options_;
  const ParameterSlots& slots_;
  std::span<const SlotPlace> places_;
  Accumulation* accumulation_;
  LayerTimes& times_;
  runtime::Stream& stream_;
  Hooks& hooks_;
};

/// Finds the first node whose values are not all finite.
class FinitenessObserver final : public PassObserver {
 public:
  explicit FinitenessObserver(const Storage& storage) : storage_{storage} {}

  void after_forward(std::size_t node, const Tensor& output, const PassContext& pass) override;
  void before_backward(const BackwardStep& step, std::span<const Tensor> gradients) override;
  [[nodiscard]] const std::optional<std::size_t>& found() const noexcept { return found_; }

 private:
  void check(std::size_t node, const Tensor& tensor);

  const Storage& storage_;
  std::optional<std::size_t> found_{};
};

}  // namespace lockstep::nn::host
