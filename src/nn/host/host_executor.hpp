// The executor on the host, with what only a host has to tell: reorders and times of its layers.
// Invariant: programs are compiled on first use of a batch size and share one arena; a steady step allocates nothing.
// Used by the trainer for --profile and by tests; others use nn/executor.hpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nn/executor.hpp"

namespace lockstep::nn::host {

/// Time in one node since enable_profile().
struct ProfileRow {
  std::string node{};
  double forward_s = 0;
  double backward_s = 0;
  std::uint64_t n_multiply_adds = 0;  ///< of one sample, forward
};

struct ExecutorState;

class HostExecutor final : public Executor {
 public:
  HostExecutor(const Network& network, const ExecutorOptions& options);
  ~HostExecutor() override;

  [[nodiscard]] std::span<const ArenaSlot> slots() const noexcept override;
  [[nodiscard]] std::size_t arena_elements() const noexcept override;
  void pack(int parameter, std::span<const float> logical, std::span<float> slot) const override;
  void unpack(int parameter, std::span<const float> slot, std::span<float> logical) const override;
  void bind(std::span<const float> parameters, std::span<float> gradients) override;
  [[nodiscard]] std::span<float> statistic(int statistic) override;
  void begin_step(std::uint64_t n_samples) override;
  LossSums forward(const data::Batch& batch, bool is_training, std::uint64_t epoch) override;
  void backward(float scale, bool accumulate, const std::function<void(std::size_t slot)>& on_ready) override;
  [[nodiscard]] std::string find_not_finite() const override;
  [[nodiscard]] std::vector<std::string> slow_layers() const override;
  [[nodiscard]] bool computes_in_floats() const override;
  [[nodiscard]] std::size_t n_bytes() const noexcept override;

  /// oneDNN reorders in the last forward() and backward() together.
  [[nodiscard]] std::size_t n_reorders() const noexcept;

  void enable_profile();
  /// In forward order; nodes that did nothing are left out.
  [[nodiscard]] std::vector<ProfileRow> profile() const;

 private:
  std::unique_ptr<ExecutorState> state_;
};

}  // namespace lockstep::nn::host
