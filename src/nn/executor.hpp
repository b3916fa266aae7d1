// A network made ready to run on a device: what a backend implements.
// Invariant: parameters and gradients live in arenas of the caller (they may be shared by processes); the executor owns
// activations and running statistics only. After the first steps of each batch size nothing is allocated.
// Used by the trainer; implemented by nn/host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/slice.hpp"
#include "data/load/batch.hpp"
#include "nn/network.hpp"

namespace lockstep::nn {

/// cross_entropy takes the softmax of a network's outputs; nll takes outputs that are logarithms of probabilities already.
enum class Loss { cross_entropy, nll, mse };

/// bf16: of activations, their gradients, and what layers read weights from. Parameters, their gradients, statistics, sums
/// and losses are float32 in both.
enum class Precision { f32, bf16 };

struct ExecutorOptions {
  std::uint64_t max_batch = 1;  ///< samples of one forward(), at most
  std::uint64_t bn_group = 0;   ///< samples whose statistics batch normalization takes together; 0: each call's batch
  Loss loss = Loss::cross_entropy;
  double label_smoothing = 0;  ///< of cross_entropy
  Precision precision = Precision::f32;
  std::uint64_t seed = 1;         ///< of dropout
  bool is_deterministic = false;  ///< nothing is chosen by timing
  /// Embeddings' parameters whose gradients are 0 whenever a step begins, as their owner sees to: backward() adds the
  /// rows of its samples and touches no others. Else it writes the whole table.
  std::vector<int> row_gradients{};
  /// Told by forward() in training of each of them, by its place in slots(): the rows of its samples, in any order and as
  /// often as they occur.
  std::function<void(std::size_t slot, std::span<const std::uint64_t> rows)> touched{};
  /// Where times decide: makes those of one rank everyone's. Called while executors are made, on every rank as often.
  std::function<void(std::span<double> times)> agree{};
  /// Where batch normalization takes the samples of several ranks together: sums over these ranks. Then each call on all
  /// of them is one group, and `bn_group` is not looked at. Called by forward() in training and by backward(), with
  /// arrays of the same lengths on all of them, also where a batch is empty.
  std::function<void(std::span<double> values)> sum_group{};
  /// Called whenever a layer is planned, or has computed its part of a pass.
  std::function<void()> on_progress{};
};

/// Sums over samples, so that those of several calls and ranks add up.
struct LossSums {
  double loss = 0;
  std::uint64_t n = 0;
  std::uint64_t n_top1 = 0;  ///< right classes; 0 for mse
  std::uint64_t n_top5 = 0;
};

/// Where a parameter lies in the arenas. Padding belongs to the slot, is 0 and stays 0.
struct ArenaSlot {
  int parameter = 0;    ///< index into Network::parameters()
  core::Slice slice{};  ///< its count is a multiple of 16
};

class Executor {
 public:
  virtual ~Executor() = default;

  /// In the order in which backward() completes their gradients.
  [[nodiscard]] virtual std::span<const ArenaSlot> slots() const noexcept = 0;
  [[nodiscard]] virtual std::size_t arena_elements() const noexcept = 0;

  /// Between PyTorch's order of elements and that of the arena. `slot`: the slot's elements.
  virtual void pack(int parameter, std::span<const float> logical, std::span<float> slot) const = 0;
  virtual void unpack(int parameter, std::span<const float> slot, std::span<float> logical) const = 0;

  /// The arenas of all following calls, arena_elements() each, 64-byte aligned. `parameters` may change between calls.
  /// Sets all gradients to 0.
  virtual void bind(std::span<const float> parameters, std::span<float> gradients) = 0;

  /// Running mean or variance, by channel. May be written.
  [[nodiscard]] virtual std::span<float> statistic(int statistic) = 0;

  /// The following calls of forward() in training are parts of one step of `n_samples`, for which running statistics
  /// move once: towards the mean over the parts, by samples. Without it each call is a step.
  virtual void begin_step(std::uint64_t n_samples) = 0;

  /// Of max_batch samples at most: x float32 (or int64 ids), y int64 classes or float32 targets. They are read again by
  /// backward() and find_not_finite(), and stay as they are until then. `is_training`: dropout by (seed, epoch, sample
  /// id), statistics of the batch; else running statistics. No ReLU hides a NaN from the loss.
  virtual LossSums forward(const data::Batch& batch, bool is_training, std::uint64_t epoch) = 0;

  /// After forward() in training: the gradient of `scale` times its summed loss, written to the gradient arena, or added
  /// to what is there. `on_ready(i)` is called when the gradient of slots()[i] is complete, for i = 0, 1, ...
  virtual void backward(float scale, bool accumulate, const std::function<void(std::size_t slot)>& on_ready) = 0;

  /// The node whose output (forward) or incoming gradient (backward) of the last call holds the first NaN or infinity, by
  /// name; empty if none does. Slow: for the message only. Computes the call again, without other ranks, so ask before
  /// parameters change; gradients are overwritten.
  [[nodiscard]] virtual std::string find_not_finite() const = 0;

  /// Layers that run on code which is slow for want of better on this device, with the reason; as batches of max_batch
  /// samples show them.
  [[nodiscard]] virtual std::vector<std::string> slow_layers() const = 0;

  /// Whether what is kept in bf16 is computed in float32, as this device computes nothing in bf16.
  [[nodiscard]] virtual bool computes_in_floats() const = 0;

  /// Memory it holds itself, arenas not counted.
  [[nodiscard]] virtual std::size_t n_bytes() const noexcept = 0;
};

/// On the host, by oneDNN and Kokkos. Needs a nn::host::KokkosSession.
[[nodiscard]] std::unique_ptr<Executor> make_host_executor(const Network& network, const ExecutorOptions& options);

}  // namespace lockstep::nn
