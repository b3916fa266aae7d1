// What a layer is given on the host: a builder while it is planned, and the context of each pass.
// Invariant: a layer requests all its memory while it is planned, through the Builder; running allocates nothing.
// Used by the layers of nn/ops, which implement HostLayer, and by the program, which plans and runs them.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "nn/executor.hpp"
#include "nn/host/dnnl_primitives.hpp"
#include "nn/host/parameter_layout.hpp"
#include "nn/host/storage.hpp"
#include "nn/plan/layer_plan.hpp"

namespace lockstep::nn::host {

/// One forward or backward pass. Layers do not store it.
struct PassContext {
  const data::Batch& batch;
  const core::StepNumbers& numbers;
  Hooks* hooks = nullptr;  ///< none if the pass is repeated
  runtime::Stream* stream = nullptr;
  Run run{};
  bool is_finite = true;  ///< layers that may hide non-finite values clear it

  /// Repeats the previous pass on this rank alone: values exchanged in that pass stay valid.
  [[nodiscard]] bool is_repeated() const noexcept { return hooks == nullptr; }
  /// Collective over the group, as Hooks::sum().
  void sum(std::span<double> values) const { hooks->sum(runtime::on_device(values), *stream); }
};

using Statistics = std::vector<std::vector<float>>;
/// Results of timing by the first program, by subject; the other programs reuse them.
using Choices = std::map<Dims, bool>;
/// Layers for which oneDNN has only reference code, one line each.
using SlowLayers = std::set<std::string>;

/// The common data of all programs of an executor.
struct Common {
  const Network& network;
  const ExecutorOptions& options;
  const PassPlan& plan;
  dnnl::engine engine;
  ParameterLayout& parameters;
  std::span<const SlotPlace> places;  ///< by parameter
  Statistics& statistics;
  Choices& choices;
  SlowLayers& slow_layers;
  bool computes_in_floats = false;  ///< although values are stored in bf16
};

/// Hands out memory and primitives to the layers of one program while it is planned.
class Builder : public Common {
 public:
  Builder(const Common& common, Storage& storage, std::uint64_t n, bool is_training);

  Storage& storage;
  const std::uint64_t n;  ///< samples
  const bool is_training;
  dnnl::memory::data_type type;  ///< of activations and their gradients
  int time = 0;                  ///< of PassPlan, when the node that is being planned runs

  /// Makes a new buffer, used now.
  [[nodiscard]] Tensor make(const Desc& desc);
  [[nodiscard]] Place make_bytes(std::size_t n_bytes);
  /// Keeps the tensor until now.
  const Tensor& use(const Tensor& tensor);

  /// The slot of a parameter, or of its gradient.
  [[nodiscard]] Tensor parameter(int parameter) const;
  [[nodiscard]] Tensor gradient(int parameter) const;
  /// Whether the backward pass that is being planned adds to this gradient, which it otherwise writes.
  [[nodiscard]] bool adds_to_gradient(int parameter) const { return plan.adds(*step_, parameter); }

  using Arguments = std::initializer_list<std::pair<int, Tensor>>;
  /// The description of a batch of samples of this shape, in order. The rows of all samples are one matrix.
  [[nodiscard]] Desc samples(const Shape& shape) const;
  /// Adds the scratchpad, and leaves out arguments that are empty tensors. Adds a line to slow_layers if it is
  /// reference code. Throws core::Error if `described` is empty, which means that oneDNN has no such primitive.
  [[nodiscard]] Primitive primitive(const dnnl::primitive_desc_base& described, Arguments arguments,
                                    Primitive::Arguments more = {});
  /// `tensor` in the layout `desc`: itself, or a copy made by a reorder that is appended to `primitives`.
  [[nodiscard]] Tensor reordered(const Tensor& tensor, const Desc& desc, std::vector<Primitive>& primitives);
  /// Appends the reorder of `from` to `to`.
  void reorder(const Tensor& from, const Tensor& to, std::vector<Primitive>& primitives);

  [[nodiscard]] bool needs_gradient(Value value) const {
    return plan.needs_gradient[static_cast<std::size_t>(value.node)];
  }
  /// Whether the loss reads the node, directly or through a log_softmax. Its result then stays float32, like the loss.
  [[nodiscard]] bool is_read_by_loss(std::size_t node) const;

  // As plan_backward() calls them.
  void begin_backward(const BackwardStep& step) { step_ = &step; }
  void await(const Tensor& gradient) { ++n_pending_[gradient.place.index]; }
  void take(const Tensor& gradient) { --n_pending_[gradient.place.index]; }
  /// Returns the place of a sum: that of `b` or of `a` if no other node needs it, or else a new one.
  [[nodiscard]] Tensor add_up(const Tensor& a, const Tensor& b, std::size_t node);
  /// Whether no node after the current one needs the gradient.
  [[nodiscard]] bool may_overwrite(const Tensor& gradient) const;

 private:
  void note_slow(const dnnl::primitive_desc_base& described);

  const BackwardStep* step_ = nullptr;      ///< that is being planned
  std::map<std::size_t, int> n_pending_{};  ///< of buffers: gradients that wait until their node is planned
};

using HostLayer = PlannedLayer<Builder, Tensor, PassContext>;
using Planned = PlannedNode<Builder, Tensor>;
using MakeHostLayer = std::function<std::unique_ptr<HostLayer>(const Planned&)>;

/// A layer that keeps its node and its first input.
class NodeLayer : public HostLayer {
 protected:
  explicit NodeLayer(const Planned& planned)
      : node_{planned.node}, storage_{planned.builder.storage}, input_{planned.builder.use(planned.inputs[0])} {}

  const Node& node_;
  Storage& storage_;
  const Tensor input_;
};

/// Defined by each layer of the table, nn/ops/NAME/host.cpp.
#define LOCKSTEP_HOST_LAYER(L) \
  [[nodiscard]] std::unique_ptr<HostLayer> make_layer(const Planned& planned, const L& layer);
LOCKSTEP_LAYERS(LOCKSTEP_HOST_LAYER)
#undef LOCKSTEP_HOST_LAYER

/// Calls `make` for a layer that oneDNN computes: as it is, or for float32 if values are stored in bf16 but oneDNN does
/// not compute in it here.
[[nodiscard]] std::unique_ptr<HostLayer> make_by_onednn(const Planned& planned, const MakeHostLayer& make);
template <class K, class L>
[[nodiscard]] std::unique_ptr<HostLayer> make_by_onednn(const Planned& planned, const L& layer) {
  return make_by_onednn(planned, [&](const Planned& p) { return std::make_unique<K>(p, layer); });
}
/// For training with the samples of all ranks that Hooks::sum() sums over.
[[nodiscard]] std::unique_ptr<HostLayer> make_sync_batch_norm(const Planned& planned, const BatchNorm& layer);

/// The square window of a convolution or a pool.
template <class L>
[[nodiscard]] Window window_of(const L& layer) {
  const auto dim = [](std::uint64_t n) { return static_cast<dnnl::memory::dim>(n); };
  const Dims padding(2, dim(layer.padding));
  return {Dims(2, dim(layer.kernel)), Dims(2, dim(layer.stride)), padding, padding};
}

/// The layout of one sample of an image: channel c at position p is at ((c / block) * n_positions + p) * block + c %
/// block.
struct ImageLayout {
  std::size_t n_channels = 0;
  std::size_t n_positions = 0;
  std::size_t block = 1;
  std::size_t n_blocks = 0;

  [[nodiscard]] std::size_t sample_elements() const noexcept { return n_blocks * n_positions * block; }
  [[nodiscard]] std::size_t at(std::size_t c, std::size_t p) const noexcept {
    return ((c / block) * n_positions + p) * block + c % block;
  }
};
/// For {n, channels, height, width}: channels first, last, or in blocks of 4, 8 or 16.
[[nodiscard]] ImageLayout image_layout(const Desc& desc);

/// Whether oneDNN computes layers in bf16 on this processor with more than its reference implementation.
[[nodiscard]] bool computes_bf16(const dnnl::engine& engine);

/// {n, ...shape}; {n * rows, features} for rows of features.
[[nodiscard]] Dims with_batch(std::uint64_t n, const Shape& shape);

}  // namespace lockstep::nn::host
