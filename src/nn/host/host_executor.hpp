// The executor on the host: enqueue() returns when the pass is done.
// Invariant: programs are compiled on first use of a batch size and share one arena; a steady step allocates nothing.
// Used by nn/host/host_device and by tests; others use nn/device.hpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nn/executor.hpp"

namespace lockstep::nn::host {

struct PassContext;
struct ExecutorState;

class HostExecutor final : public Executor, public Inspection, public LayerTimes {
 public:
  HostExecutor(const Network& network, const ExecutorOptions& options);
  ~HostExecutor() override;

  [[nodiscard]] std::span<const ArenaSlot> slots() const noexcept override;
  [[nodiscard]] std::size_t arena_elements() const noexcept override;
  void pack(int parameter, core::Slice rows, std::span<const float> logical, std::span<float> elements) const override;
  void unpack(int parameter, core::Slice rows, std::span<const float> elements,
              std::span<float> logical) const override;
  void bind(runtime::DeviceSpan<const float> parameters, runtime::DeviceSpan<float> gradients,
            runtime::DeviceSpan<const std::byte> weights) override;
  [[nodiscard]] std::span<float> statistic(int statistic) override;
  void enqueue(const data::Batch& batch, Pass pass, const core::StepNumbers& numbers, Hooks& hooks,
               runtime::Stream& stream) override;
  [[nodiscard]] LossSums sums() override;
  [[nodiscard]] LayerTimes& layer_times() noexcept override { return *this; }
  [[nodiscard]] Inspection* inspection() noexcept override { return this; }
  [[nodiscard]] std::vector<std::string> slow_layers() const override;
  [[nodiscard]] bool computes_in_floats() const override;
  [[nodiscard]] std::size_t n_bytes() const noexcept override;

  /// The number of oneDNN reorders in the last forward and backward pass together.
  [[nodiscard]] std::size_t n_reorders() const noexcept;

  void start_profile() override;
  [[nodiscard]] bool is_profiling() const noexcept override;
  [[nodiscard]] std::vector<ProfileRow> end_profile() override;
  [[nodiscard]] bool is_finite() const override;
  [[nodiscard]] std::string find_not_finite() const override;

 private:
  void forward(PassContext& pass, bool is_training);
  void backward(PassContext& pass, bool is_adding);

  std::unique_ptr<ExecutorState> state_;
};

}  // namespace lockstep::nn::host
