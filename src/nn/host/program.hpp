// A network prepared for one batch size: its kernels in order, and one memory plan for all of them.
// Invariant: nothing is allocated after construction; programs of a network may share an arena, one pass at a time.
// Used by nn/host/host_executor.
#pragma once

#include <memory>
#include <vector>

#include "nn/host/kernel.hpp"
#include "nn/host/loss.hpp"

namespace lockstep::nn::host {

/// The common data of all programs of an executor.
struct Common {
  const Network& network;
  const ExecutorOptions& options;
  dnnl::engine engine;
  ParameterLayout& parameters;
  Statistics& statistics;
  Choices& choices;
  SlowLayers& slow_layers;
  bool computes_in_floats;  ///< although values are stored in bf16
};

/// Observes the progress of a pass.
class PassObserver {
 public:
  virtual ~PassObserver() = default;
  /// `gradients` are those of the node's output.
  virtual void before_backward(std::size_t /*node*/, std::span<const Tensor> /*gradients*/) {}
  /// The gradients of the node's parameters are complete.
  virtual void after_backward(std::size_t /*node*/) {}
  virtual void after_forward(std::size_t /*node*/, const Tensor& /*output*/, const PassContext& /*call*/) {}
};

class Program {
 public:
  Program(const Common& common, std::uint64_t n, bool is_training);

  [[nodiscard]] std::size_t n_bytes() const noexcept { return storage_.n_bytes(); }
  [[nodiscard]] const Storage& storage() const noexcept { return storage_; }
  void rebase(const Bases& bases) { storage_.rebase(bases); }

  /// Returns a NaN loss if any value was not finite, even if later layers hide that.
  [[nodiscard]] LossSums forward(PassContext& pass, PassObserver& observer);
  void backward(PassContext& pass, PassObserver& observer);

 private:
  /// Adds two gradients of one value that arrive from different readers.
  struct Sum {
    Place a, b;
    Tensor out;
  };
  struct Step {
    std::unique_ptr<Kernel> kernel{};
    std::vector<Sum> sums{};  ///< before the backward pass
    bool has_backward = false;
    std::vector<Tensor> incoming{};  ///< gradients of the output, as many as the kernel accepts
  };

  void run_sum(const Sum& sum) const;
  void plan_forward(Builder& builder);
  void plan_backward(Builder& builder);
  [[nodiscard]] std::vector<Tensor> add_up(Builder& builder, Step& step, std::vector<Tensor> gradients) const;
  [[nodiscard]] std::unique_ptr<Kernel> make_kernel(Builder& builder, std::size_t index) const;
  /// Whether the only reader of a node may overwrite its output, because the node itself no longer needs it.
  [[nodiscard]] bool may_be_overwritten(std::size_t index) const;

  const Network& network_;
  bool computes_in_floats_;
  Storage storage_;
  std::vector<Step> steps_{};
  std::unique_ptr<LossKernel> loss_{};
};

}  // namespace lockstep::nn::host
