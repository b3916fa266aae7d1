// The executor on the host: enqueue() returns when the pass is done.
// Invariant: programs are compiled on first use of a batch size and share one arena, which is as large as the largest
// program that ran; all programs know its address. A steady step allocates nothing.
// Used by nn/host/host_device and by tests; others use nn/device.hpp.
#pragma once

#include <map>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "nn/host/observers.hpp"
#include "nn/plan/planned_executor.hpp"

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

class HostExecutor final : public PlannedExecutor, public Inspection {
 public:
  HostExecutor(const Network& network, const ExecutorOptions& options);

  [[nodiscard]] std::span<float> statistic(int statistic) override;
  void enqueue(const data::Batch& batch, Pass pass, const core::StepNumbers& numbers, Hooks& hooks,
               runtime::Stream& stream) override;
  [[nodiscard]] LossSums sums() override { return std::exchange(sums_, {}); }
  [[nodiscard]] Inspection* inspection() noexcept override { return this; }
  [[nodiscard]] std::vector<std::string> slow_layers() const override {
    return {slow_layers_.begin(), slow_layers_.end()};
  }
  [[nodiscard]] bool computes_in_floats() const override { return computes_in_floats_; }
  [[nodiscard]] std::size_t n_bytes() const noexcept override;

  /// The number of oneDNN reorders in the last forward and backward pass together.
  [[nodiscard]] std::size_t n_reorders() const noexcept { return last_.n_reorders; }

  [[nodiscard]] bool is_finite() const override { return last_.is_finite; }
  [[nodiscard]] std::string find_not_finite() const override;

 private:
  struct LastPass {
    data::Batch batch{};
    core::StepNumbers numbers{};
    Pass pass = Pass::evaluation;
    Program* program = nullptr;  ///< none for an empty batch
    bool is_finite = true;       ///< the loss
    std::size_t n_reorders = 0;
  };

  [[nodiscard]] const SlotLayout& layout() const noexcept override { return parameters_; }
  /// Returns the program of a batch size. Its memory may not exist yet.
  Program& plan(std::uint64_t n, bool is_training);
  /// Returns a program that can run.
  Program& ready(std::uint64_t n, bool is_training);
  void forward(PassContext& pass, bool is_training, PassReporter& reporter);
  void backward(PassContext& pass, bool is_adding, PassReporter& reporter);

  const dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  const dnnl::stream stream_{engine_};
  ParameterLayout parameters_{network_};
  Statistics statistics_{};
  Choices choices_{};
  SlowLayers slow_layers_{};
  bool computes_in_floats_;  ///< although values are stored in bf16
  std::map<std::pair<std::uint64_t, bool>, std::unique_ptr<Program>> programs_{};
  ActivationArena arena_{};
  std::size_t planned_bytes_ = 0;  ///< of the largest program
  Accumulation accumulation_{};
  LastPass last_{};
  LossSums sums_{};  ///< since they were last read
};

}  // namespace lockstep::nn::host
