// A network prepared for a device: the interface of a backend.
// Invariant: parameters and gradients are in memory of the caller (processes may share it); the executor owns only
// activations and running statistics. Passes are enqueued and need not be done when enqueue() returns. After the first
// steps of each batch size nothing is allocated.
// Used by the trainer; implemented by nn/host and nn/cuda.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/dtype.hpp"
#include "core/slice.hpp"
#include "core/step_numbers.hpp"
#include "data/load/batch.hpp"
#include "nn/graph/network.hpp"
#include "nn/layer_times.hpp"
#include "runtime/device.hpp"

namespace lockstep::nn {

/// The loss of a row of the network's output; that of a sample is the mean of its rows. cross_entropy includes the
/// softmax; nll takes outputs that are already logarithms of probabilities; mse is the mean over a row's outputs.
enum class Loss { cross_entropy, nll, mse };

/// bf16, f16: the type of activations, their gradients, and the weights that layers read. Parameters, their gradients,
/// statistics, sums and losses are always float32.
enum class Precision { f32, bf16, f16 };

/// Slots in the arenas begin at multiples of this many elements, and have such sizes.
inline constexpr std::size_t slot_multiple = 16;

/// A parameter that has no place in the arenas yet.
struct Unplaced {
  std::string name{};
  std::string unit{};          ///< Node::unit of its layer
  std::size_t n_elements = 0;  ///< with padding: a multiple of slot_multiple
  bool is_vector = false;      ///< of one dimension: a bias, or a weight of a normalization
  bool is_shared = false;      ///< by several layers
};

struct Placed {
  core::Slice slice{};  ///< of the arenas
  /// What passes need together, see Hooks::need(). None: the parameter is always there. So are vectors, because a layer
  /// that is computed as part of another reads them there.
  std::optional<std::size_t> unit{};
};

/// Returns the place of each parameter, of its size, at a multiple of slot_multiple, without overlap. Parameters come
/// in the order in which backward completes their gradients. A pure function: all executors of a network agree.
using PlaceParameters = std::function<std::vector<Placed>(std::span<const Unplaced>)>;

struct ExecutorOptions {
  std::uint64_t max_batch = 1;  ///< samples of one pass, at most
  std::uint64_t bn_group = 0;   ///< samples that batch normalization takes statistics of together; 0: each call's batch
  Loss loss = Loss::cross_entropy;
  double label_smoothing = 0;  ///< of cross_entropy
  Precision precision = Precision::f32;
  std::uint64_t seed = 1;         ///< of dropout
  bool is_deterministic = false;  ///< nothing is chosen by timing
  /// Parameters of embeddings whose gradients are 0 at the start of every step; their owner ensures that. A backward
  /// pass adds only the rows of its samples, those reported by Hooks::touched(). Otherwise it writes the whole table.
  /// Parameters with several readers have none.
  std::vector<int> row_gradients{};
  /// Gives one rank's times to all ranks, for decisions by timing. Called while executors are made, equally often on
  /// every rank.
  std::function<void(std::span<double> times)> agree{};
  /// Batch normalization combines the samples of the ranks that Hooks::sum() sums over: each pass on all of them is one
  /// group, and `bn_group` is ignored.
  bool is_group_of_ranks = false;
  /// Called whenever a layer is planned or has computed its part of a pass.
  std::function<void()> on_progress{};
  /// Empty: parameters follow one another without gaps, and are in no unit.
  PlaceParameters place{};
};

/// Sums over the rows of the output of all samples, so that the sums of several calls and ranks can be added.
struct LossSums {
  double loss = 0;
  std::uint64_t n = 0;       ///< rows: samples, unless the output of a sample has several rows
  std::uint64_t n_top1 = 0;  ///< correct classes; 0 for mse
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
  evaluation,      ///< forward, with running statistics, without dropout
  forward,         ///< in training: with statistics of the batch and dropout by (seed, epoch, sample id)
  backward,        ///< of the previous forward pass: writes the gradient of the loss
  backward_adding  ///< the same, but adds it to the present values
};

/// Events and requests of a pass while it is enqueued: they concern the order in the stream, not completion.
class Hooks {
 public:
  virtual ~Hooks() = default;
  /// In training, for an embedding in ExecutorOptions::row_gradients: reports the rows of the batch's samples, in any
  /// order, with repetitions.
  virtual void touched(std::size_t slot, std::span<const std::uint64_t> rows) = 0;
  /// Reports that the gradients of slots()[slot] and of all slots before it are complete; for slot = 0, 1, ...
  virtual void ready(std::size_t slot) = 0;
  /// Collective over the ranks of a group: replaces `values` by their sums. All ranks pass equally many values, even
  /// for an empty batch.
  virtual void sum(runtime::DeviceSpan<double> values, runtime::Stream& stream) = 0;
  /// In each direction, before the first layer that reads a parameter of the unit: the layers that `stream` is given
  /// from now on read them. A unit with a parameter that layers at both ends share is thus needed from end to end.
  /// Every pass of a kind makes the same calls of need() and done() in the same order, also for an empty batch. While a
  /// pass is recorded they may only enqueue; a replay makes no calls.
  virtual void need(std::size_t /*unit*/, runtime::Stream& /*stream*/) {}
  /// After the last such layer: no work of this direction that is enqueued later reads the unit's parameters, and none
  /// on other streams does. Its gradients may be incomplete: see ready().
  virtual void done(std::size_t /*unit*/, runtime::Stream& /*stream*/) {}
};

/// Running statistics in a device's memory, and as much memory for a copy of earlier ones.
struct DeviceStatistics {
  runtime::DeviceSpan<float> values{};
  runtime::DeviceSpan<float> kept{};  ///< what the host writes to statistic() also goes here
};

/// The place of a parameter in the arenas. Padding belongs to the slot, is 0 and stays 0. A piece cut at multiples of
/// `block` elements from its begin is a slice of the logical tensor, seen as {outer, n_rows, n_inner}: `block_rows` of
/// its rows. Rows are single elements, if all follow one another as in PyTorch; or output channels, if the layout keeps
/// them together; otherwise the whole tensor is one block.
struct ArenaSlot {
  int parameter = 0;                  ///< index into Network::parameters()
  std::optional<std::size_t> unit{};  ///< Placed::unit
  core::Slice slice{};                ///< a multiple of slot_multiple elements
  std::size_t block = 0;
  std::size_t block_rows = 0;
  std::size_t n_rows = 0;
  std::size_t n_inner = 0;

  [[nodiscard]] core::Slice all_rows() const noexcept { return {0, n_rows}; }
  /// Returns the rows of a piece: a slice of the arena within the slot, cut at multiples of `block` from its begin.
  [[nodiscard]] core::Slice rows_in(const core::Slice& piece) const noexcept {
    const std::size_t first = piece.seen_from(slice.offset).offset / block * block_rows;
    const std::size_t end = piece.seen_from(slice.offset).end() / block * block_rows;
    return core::intersection({first, end - first}, all_rows());
  }
};

/// Where passes find a slot: its elements, with padding. The arena begins at 64-byte aligned addresses, and so do
/// `parameters` and `gradients`; `weights` at slot_multiple of their elements.
struct SlotPlace {
  runtime::DeviceSpan<const float> parameters{};
  runtime::DeviceSpan<float> gradients{};
  /// The parameters rounded to Executor::weights_type(), in bytes; empty if that is float32.
  runtime::DeviceSpan<const std::byte> weights{};
};

/// Further facts about the last pass: where numbers stop being finite. Inspection changes no result.
class Inspection {
 public:
  virtual ~Inspection() = default;

  /// Whether the loss of the last forward pass is finite; waits for it.
  [[nodiscard]] virtual bool is_finite() const = 0;
  /// Returns the name of the first node of the last pass with a NaN or infinity in its output (forward) or incoming
  /// gradient (backward); empty if there is none. Slow, for the message only. Computes the pass again without other
  /// ranks and overwrites gradients, so it must be called before parameters change. Empty if parameters share memory,
  /// because then a rank cannot compute alone.
  [[nodiscard]] virtual std::string find_not_finite() const = 0;
};

class Executor {
 public:
  virtual ~Executor() = default;

  /// Ascending in the arenas. Without ExecutorOptions::place, in the order in which backward completes their gradients.
  [[nodiscard]] virtual std::span<const ArenaSlot> slots() const noexcept = 0;
  [[nodiscard]] virtual std::size_t arena_elements() const noexcept = 0;
  /// By unit: the nodes of the network from the first that reads it to the last. They are the order of Hooks::need().
  [[nodiscard]] virtual std::vector<core::Slice> unit_reads() const = 0;

  /// Converts `rows` of a slot between PyTorch's order of elements, {outer, rows, n_inner}, and that of the arena:
  /// whole blocks, or up to the last row. `elements`: the arena's elements, with padding.
  virtual void pack(int parameter, core::Slice rows, std::span<const float> logical,
                    std::span<float> elements) const = 0;
  virtual void unpack(int parameter, core::Slice rows, std::span<const float> elements,
                      std::span<float> logical) const = 0;

  /// The type of bind()'s `weights`; float32: there are none. Passes then read the parameters; the host's round them
  /// while they change their layout.
  [[nodiscard]] virtual core::DType weights_type() const noexcept { return core::DType::float32; }
  [[nodiscard]] std::size_t weights_bytes() const noexcept {
    const core::DType type = weights_type();
    return type == core::DType::float32 ? 0 : arena_elements() * core::size_of(type);
  }

  /// Called once: sets one place for each of slots(), for all passes. Gradients are set to 0. Passes read parameters
  /// and weights, whose values may change between passes, and write gradients without their padding.
  /// Places of slots in different units may overlap, if Hooks fill them: need() with the unit's parameters and weights,
  /// and in a backward pass with gradients of 0, or those to add to. Another unit may have memory of parameters after
  /// done(), and that of gradients after ready() of all slots of its unit. Slots without a unit share memory with no
  /// other.
  virtual void bind(std::span<const SlotPlace> places) = 0;

  /// Sets the number that multiplies the loss in later backward passes; the device reads it when it gets there. Without
  /// it, f16 would lose small values. Not on the host.
  virtual void scale_loss(runtime::DeviceSpan<const float> /*scale*/) {}

  /// The running mean or variance, by channel. The caller may write it.
  [[nodiscard]] virtual std::span<float> statistic(int statistic) = 0;
  /// None if the host is the device.
  [[nodiscard]] virtual DeviceStatistics device_statistics() noexcept { return {}; }

  /// Collective if ranks form a group. `batch` has at most max_batch samples: x float32 (or int64 ids, or images with
  /// at most the pixels of the network's input), y int64 classes, one for each row of the output, or float32 targets. A
  /// backward pass belongs to the batch of the previous forward pass and reads it again, so the batch must not change
  /// until it is done. The gradient is that of the samples' summed loss times scale and sample weight. No ReLU hides a
  /// NaN from the loss.
  virtual void enqueue(const data::Batch& batch, Pass pass, const core::StepNumbers& numbers, Hooks& hooks,
                       runtime::Stream& stream) = 0;

  /// For devices, instead of enqueue() of a forward and a backward pass in training with the same numbers. First does
  /// the host's part, then the passes, in which the host only calls hooks. So a recording of the passes is valid for
  /// any batch of as many samples whose images have one size. Not for an empty batch. `backward`: the kind of backward
  /// pass.
  virtual void send(const data::Batch& /*batch*/, const core::StepNumbers& /*numbers*/, Hooks& /*hooks*/,
                    runtime::Stream& /*stream*/) {}
  virtual void enqueue_sent(Pass /*backward*/, Hooks& /*hooks*/, runtime::Stream& /*stream*/) {}

  /// Sums over all forward passes enqueued since the last call, and waits for them. Called when the next step begins,
  /// it does not stall.
  [[nodiscard]] virtual LossSums sums() = 0;

  /// For devices, instead of sums(): enqueues the end of one step's sums and starts new ones. The second function
  /// returns the sums of the first step not yet requested, and waits for it alone. At most two steps may have such
  /// sums.
  virtual void end_sums(runtime::Stream& /*stream*/) {}
  [[nodiscard]] virtual LossSums ended_sums() { return {}; }

  /// The times of passes enqueued by enqueue(); none of them may be recorded while they are timed.
  [[nodiscard]] virtual LayerTimes& layer_times() noexcept = 0;

  /// The inspection of this backend's passes; null if it has none.
  [[nodiscard]] virtual Inspection* inspection() noexcept { return nullptr; }

  /// Layers that run on slow code because this device has no better, with the reason; for batches of max_batch samples.
  [[nodiscard]] virtual std::vector<std::string> slow_layers() const = 0;

  /// Whether values stored in bf16 are computed in float32, because this device does not compute in bf16.
  [[nodiscard]] virtual bool computes_in_floats() const = 0;

  /// Memory of its own, without the arenas.
  [[nodiscard]] virtual std::size_t n_bytes() const noexcept = 0;
};

}  // namespace lockstep::nn
