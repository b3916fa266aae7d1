// A network prepared for one batch size on a GPU: its layers in order, and the places of all their data.
// Invariant: nothing is allocated after construction; the operations of a pass depend on its kind, and on whether
// layers are timed.
// Used by nn/cuda/cuda_executor.
#pragma once

#include <memory>
#include <vector>

#include "nn/cuda/kernels/loss.hpp"
#include "nn/cuda/layers.hpp"
#include "nn/layer_times.hpp"

namespace lockstep::nn::cuda {

template <class T>
class Program {
 public:
  /// Without `memory` it can only describe itself.
  Program(const Common<T>& common, SharedArena* memory, std::uint64_t n, bool is_training);

  /// Its size in the arena.
  [[nodiscard]] std::size_t n_bytes() const noexcept { return n_bytes_; }

  /// Sends the host's part of the batch; before forward().
  void send(PassContext& pass);
  /// Adds the batch's loss to `totals`. The last node's time includes the loss. `is_backward_next`: backward() follows
  /// with the same numbers, so the loss and its gradient are computed together.
  void forward(PassContext& pass, LossTotals* totals, LayerTimes& times, bool is_backward_next);
  /// Called once after each forward pass; overwrites its values.
  void backward(PassContext& pass, LayerTimes& times);

 private:
  void enqueue_loss(PassContext& pass, bool is_backward);
  /// Rows of the output of all samples.
  [[nodiscard]] std::size_t n_rows() const { return n_ * values_.back().n_rows(); }

  Common<T> common_;
  std::size_t n_;
  std::vector<ValueLayout> values_;
  std::vector<LayerStep<CudaLayer<T>, Place<T>>> steps_;
  ProgramMemory memory_{};
  std::size_t n_bytes_ = 0;
  Place<T> loss_gradient_{};
  bool has_loss_gradient_ = false;  ///< of the last forward pass
  Place<SampleLoss> losses_{};
};

}  // namespace lockstep::nn::cuda
