// A network prepared for one batch size: its layers in order, and one memory plan for all of them.
// Invariant: nothing is allocated after construction; programs of a network may share an arena, one pass at a time.
// Used by nn/host/host_executor.
#pragma once

#include <memory>
#include <vector>

#include "nn/host/layers.hpp"
#include "nn/host/loss.hpp"

namespace lockstep::nn::host {

/// Observes the progress of a pass.
class PassObserver {
 public:
  virtual ~PassObserver() = default;
  /// After Hooks::need() of the step's units. `gradients` are those of the node's output.
  virtual void before_backward(const BackwardStep& /*step*/, std::span<const Tensor> /*gradients*/) {}
  /// The gradients of the node's parameters are complete.
  virtual void after_backward(const BackwardStep& /*step*/) {}
  virtual void after_forward(std::size_t /*node*/, const Tensor& /*output*/, const PassContext& /*call*/) {}
};

class Program {
 public:
  Program(const Common& common, std::uint64_t n, bool is_training);

  [[nodiscard]] std::size_t n_bytes() const noexcept { return storage_.n_bytes(); }
  [[nodiscard]] const Storage& storage() const noexcept { return storage_; }
  void rebase(std::byte* arena) { storage_.rebase(arena); }

  /// Returns a NaN loss if any value was not finite, even if later layers hide that.
  [[nodiscard]] LossSums forward(PassContext& pass, PassObserver& observer);
  void backward(PassContext& pass, PassObserver& observer);

 private:
  void run_sum(const GradientSum<Tensor>& sum) const;

  Common common_;
  Storage storage_;
  std::vector<LayerStep<HostLayer, Tensor>> steps_;
  std::unique_ptr<HostLoss> loss_{};
};

}  // namespace lockstep::nn::host
