// A network made ready for one batch size on a GPU: its layers in order, and all memory they touch.
// Invariant: nothing is allocated after construction; what a pass enqueues depends on its kind alone.
// Used by nn/cuda/cuda_executor.
#pragma once

#include <memory>
#include <vector>

#include "nn/cuda/kernels/loss.hpp"
#include "nn/cuda/layers.hpp"

namespace lockstep::nn::cuda {

template <class T>
class Program {
 public:
  Program(const Network& network, const ExecutorOptions& options, const ParameterLayout& parameters,
          const Arenas<T>& arenas, Convolutions& convolutions, std::uint64_t n, bool is_training);

  [[nodiscard]] std::size_t n_bytes() const noexcept;
  /// Adds the batch's loss to `totals`.
  void forward(PassContext& pass, LossTotals* totals);
  void backward(PassContext& pass);

 private:
  struct Step {
    std::unique_ptr<CudaLayer<T>> layer{};
    std::vector<const T*> gradients{};  ///< of the output, by its readers
    std::vector<T*> sums{};             ///< of the first two, of that and the third, ...
    bool has_backward = false;
  };

  void plan_forward(Builder<T>& builder);
  void plan_backward(Builder<T>& builder);
  [[nodiscard]] std::unique_ptr<CudaLayer<T>> make_layer(Builder<T>& builder, std::size_t index) const;
  void enqueue_loss(PassContext& pass, bool is_backward);

  const Network& network_;
  const ExecutorOptions& options_;
  const ParameterLayout& parameters_;
  std::size_t n_;
  std::vector<ValueLayout> values_;
  std::vector<Step> steps_;
  T* loss_gradient_ = nullptr;
  SampleLoss* losses_ = nullptr;
  std::uint32_t* has_bad_label_;
  std::vector<runtime::Buffer> memory_{};
};

}  // namespace lockstep::nn::cuda
