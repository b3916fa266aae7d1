// A network made ready to run on a device: what a backend implements.
// Invariant: parameters and gradients live in arenas of the caller (they may be shared by processes); the executor owns
// activations and running statistics only. Passes are enqueued and need not be done when enqueue() returns. After the
// first steps of each batch size nothing is allocated.
// Used by the trainer; implemented by nn/host and nn/cuda.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/slice.hpp"
#include "core/step_numbers.hpp"
#include "data/load/batch.hpp"
#include "nn/inspection.hpp"
#include "nn/layer_times.hpp"
#include "nn/network.hpp"
#include "runtime/device.hpp"

namespace lockstep::nn {

/// cross_entropy takes the softmax of a network's outputs; nll takes outputs that are logarithms of probabilities
/// already.
enum class Loss { cross_entropy, nll, mse };

/// bf16, f16: of activations, their gradients, and what layers read weights from. Parameters, their gradients,
/// statistics, sums and losses are float32 in all.
enum class Precision { f32, bf16, f16 };

struct ExecutorOptions {
  std::uint64_t max_batch = 1;  ///< samples of one pass, at most
  std::uint64_t bn_group = 0;   ///< samples whose statistics batch normalization takes together; 0: each call's batch
  Loss loss = Loss::cross_entropy;
  double label_smoothing = 0;  ///< of cross_entropy
  Precision precision = Precision::f32;
  std::uint64_t seed = 1;         ///< of dropout
  bool is_deterministic = false;  ///< nothing is chosen by timing
  /// Embeddings' parameters whose gradients are 0 whenever a step begins, as their owner sees to: a backward pass adds
  /// the rows of its samples, those that Hooks::touched() tells of, and touches no others. Else it writes the whole
  /// table.
  std::vector<int> row_gradients{};
  /// Where times decide: makes those of one rank everyone's. Called while executors are made, on every rank as often.
  std::function<void(std::span<double> times)> agree{};
  /// Batch normalization takes the samples of several ranks together, those that Hooks::sum() sums over: each pass on
  /// all of them is one group, and `bn_group` is not looked at.
  bool is_group_of_ranks = false;
  /// Called whenever a layer is planned, or has computed its part of a pass.
  std::function<void()> on_progress{};
};

/// Sums over samples, so that those of several calls and ranks add up.
struct LossSums {
  double loss = 0;
  std::uint64_t n = 0;
  std::uint64_t n_top1 = 0;  ///< right classes; 0 for mse
  std::uint64_t n_top5 = 0;

  LossSums& operator+=(const LossSums& more) noexcept {
    loss += more.loss;
    n += more.n;
    n_top1 += more.n_top1;
    n_top5 += more.n_top5;
    return *this;
  }
};

/// What a pass does.
enum class Pass : std::uint8_t {
  evaluation,      ///< forward, by running statistics, without dropout
  forward,         ///< of training: by statistics of the batch, with dropout by (seed, epoch, sample id)
  backward,        ///< of the forward pass before: writes the gradient of the loss to the arena
  backward_adding  ///< the same, added to what is there
};

/// What a pass tells, or asks for, while it is enqueued: so it is about the order in the stream, and not about what has
/// been done.
class Hooks {
 public:
  virtual ~Hooks() = default;
  /// In training, of an embedding in ExecutorOptions::row_gradients: the rows of the batch's samples, in any order and
  /// as often as they occur.
  virtual void touched(std::size_t slot, std::span<const std::uint64_t> rows) = 0;
  /// The gradient of slots()[slot] is complete; for slot = 0, 1, ...
  virtual void ready(std::size_t slot) = 0;
  /// Collective over the ranks of a group: `values` become their sums. As many on all of them, also where a batch is
  /// empty.
  virtual void sum(runtime::DeviceSpan<double> values, runtime::Stream& stream) = 0;
};

/// Running statistics in a device's memory, and as many numbers for who keeps them as they were.
struct DeviceStatistics {
  runtime::DeviceSpan<float> values{};
  runtime::DeviceSpan<float> kept{};  ///< the same whenever the host has written statistic()
};

/// Where a parameter lies in the arenas. Padding belongs to the slot, is 0 and stays 0. What is cut off at multiples of
/// `block` elements from its begin is a slice of the logical tensor, taken as {outer, n_rows, n_inner}: `block_rows` of
/// its rows. Rows are output channels, where the layout has them together; else all of it is one block.
struct ArenaSlot {
  int parameter = 0;    ///< index into Network::parameters()
  core::Slice slice{};  ///< a multiple of 16 elements
  std::size_t block = 0;
  std::size_t block_rows = 0;
  std::size_t n_rows = 0;
  std::size_t n_inner = 0;

  [[nodiscard]] core::Slice all_rows() const noexcept { return {0, n_rows}; }
};

class Executor {
 public:
  virtual ~Executor() = default;

  /// In the order in which a backward pass completes their gradients.
  [[nodiscard]] virtual std::span<const ArenaSlot> slots() const noexcept = 0;
  [[nodiscard]] virtual std::size_t arena_elements() const noexcept = 0;

  /// Between PyTorch's order of elements, {outer, rows, n_inner}, and that of the arena, of `rows` of its slot: whole
  /// blocks, or up to the last. `elements`: what holds them, with its padding.
  virtual void pack(int parameter, core::Slice rows, std::span<const float> logical,
                    std::span<float> elements) const = 0;
  virtual void unpack(int parameter, core::Slice rows, std::span<const float> elements,
                      std::span<float> logical) const = 0;

  /// Once: the arenas of all passes, arena_elements() each, 64-byte aligned. Their values may change between passes.
  /// Padding of gradients that no pass writes is set to 0.
  virtual void bind(runtime::DeviceSpan<const float> parameters, runtime::DeviceSpan<float> gradients) = 0;

  /// One number that multiplies the loss in backward passes from now on, read when the device comes to it: what is
  /// small in f16 is lost otherwise. Not on the host.
  virtual void scale_loss(runtime::DeviceSpan<const float> /*scale*/) {}

  /// Running mean or variance, by channel. May be written.
  [[nodiscard]] virtual std::span<float> statistic(int statistic) = 0;
  /// None where the host is the device.
  [[nodiscard]] virtual DeviceStatistics device_statistics() noexcept { return {}; }

  /// Collective where ranks are a group. `batch`: of max_batch samples at most: x float32 (or int64 ids, or images
  /// of no more pixels than the network's input has), y int64 classes or float32 targets; it is read again by a
  /// backward pass, and stays as it is until that is done. A backward pass is for the batch of the forward pass before;
  /// its gradient is that of the summed loss times scale and sample weight. No ReLU hides a NaN from the loss.
  virtual void enqueue(const data::Batch& batch, Pass pass, const core::StepNumbers& numbers, Hooks& hooks,
                       runtime::Stream& stream) = 0;

  /// For devices, instead of enqueue() of a forward and a backward pass in training with the same numbers: first what
  /// the host has to do for them, then the passes, in which it has no hand but for hooks, so that a recording of them
  /// does for any batch of as many samples, whose images have one size. Not of an empty batch. `backward`: which pass
  /// follows the forward pass.
  virtual void send(const data::Batch& /*batch*/, const core::StepNumbers& /*numbers*/, Hooks& /*hooks*/,
                    runtime::Stream& /*stream*/) {}
  virtual void enqueue_sent(Pass /*backward*/, Hooks& /*hooks*/, runtime::Stream& /*stream*/) {}

  /// Of all forward passes enqueued since the last call of it. Waits for these: asked when the next step begins,
  /// nothing stands still for it.
  [[nodiscard]] virtual LossSums sums() = 0;

  /// For devices, instead: enqueues that the sums so far are those of one step, and begin anew; then asks for those of
  /// the first step that they were not asked for, and waits for it alone. Of two steps there may be such sums.
  virtual void end_sums(runtime::Stream& /*stream*/) {}
  [[nodiscard]] virtual LossSums ended_sums() { return {}; }

  [[nodiscard]] virtual LayerTimes& layer_times() noexcept = 0;

  /// What this backend can tell of its passes; null if nothing.
  [[nodiscard]] virtual Inspection* inspection() noexcept { return nullptr; }

  /// Layers that run on code which is slow for want of better on this device, with the reason; as batches of max_batch
  /// samples show them.
  [[nodiscard]] virtual std::vector<std::string> slow_layers() const = 0;

  /// Whether what is kept in bf16 is computed in float32, as this device computes nothing in bf16.
  [[nodiscard]] virtual bool computes_in_floats() const = 0;

  /// Memory it holds itself, arenas not counted.
  [[nodiscard]] virtual std::size_t n_bytes() const noexcept = 0;
};

}  // namespace lockstep::nn
