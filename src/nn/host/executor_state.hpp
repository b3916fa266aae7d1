// The state of the executor on the host: layouts, running statistics, programs and their arena, and the last call.
// Invariant: the arena is as large as the largest program that ran; all programs know its address.
// Used by nn/host/host_executor.
#pragma once

#include <map>
#include <memory>
#include <new>
#include <utility>

#include "nn/host/observers.hpp"

namespace lockstep::nn::host {

/// Memory that is untouched until a program uses it.
class ActivationArena {
 public:
  [[nodiscard]] std::byte* data() const noexcept { return data_.get(); }
  [[nodiscard]] std::size_t n_bytes() const noexcept { return n_bytes_; }
  /// Loses its content.
  void grow(std::size_t n_bytes);

 private:
  static constexpr std::align_val_t alignment{4096};
  struct Free {
    void operator()(std::byte* data) const noexcept { ::operator delete[](data, alignment); }
  };
  std::unique_ptr<std::byte[], Free> data_{};
  std::size_t n_bytes_ = 0;
};

struct LastPass {
  data::Batch batch{};
  core::StepNumbers numbers{};
  Pass pass = Pass::evaluation;
  Program* program = nullptr;  ///< none for an empty batch
  bool is_finite = true;       ///< the loss
  std::size_t n_reorders = 0;
};

struct ExecutorState {
  ExecutorState(const Network& network, const ExecutorOptions& options);

  /// Returns the program of a batch size. Its memory may not exist yet.
  Program& plan(std::uint64_t n, bool is_training);
  /// Returns a program that can run.
  Program& ready(std::uint64_t n, bool is_training);
  /// Throws core::Error unless the batch fits.
  void check(const data::Batch& batch) const;
  [[nodiscard]] std::span<float> gradients() const;

  const Network network;
  const ExecutorOptions options;
  const PassPlan pass_plan{plan_pass(network)};
  const dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  const dnnl::stream stream{engine};
  ParameterLayout parameters;
  Statistics statistics{};
  Choices choices{};
  SlowLayers slow_layers{};
  bool computes_in_floats = false;  ///< although values are stored in bf16
  std::map<std::pair<std::uint64_t, bool>, std::unique_ptr<Program>> programs{};
  ActivationArena arena{};
  std::size_t planned_bytes = 0;  ///< of the largest program
  Bases bases{};
  Accumulation accumulation{};
  std::unique_ptr<Profile> profile{};
  LastPass last{};
  LossSums sums{};  ///< since they were last read
};

}  // namespace lockstep::nn::host
