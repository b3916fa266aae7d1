// What a layer is given on a GPU: a builder while it is planned, and the context of each pass.
// Invariant: all memory is taken while a layer is planned; a pass reads nothing that the host may change later.
// Used by the layers of nn/ops, which implement CudaLayer, and by the program, which plans and enqueues them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "nn/cuda/convolution.hpp"
#include "nn/cuda/layout.hpp"
#include "nn/cuda/program_memory.hpp"
#include "nn/executor.hpp"
#include "nn/plan/fusion.hpp"
#include "nn/plan/layer_plan.hpp"
#include "runtime/device.hpp"

namespace lockstep::nn::cuda {

/// A batch of pixels with their size: data::Images.
struct DeviceImages {
  const std::uint8_t* pixels = nullptr;
  const data::ImageView* views = nullptr;
  const float* levels = nullptr;
  int height = 0, width = 0;
};

/// A batch in the device's memory, with the facts that the host needs.
struct DeviceBatch {
  const float* x = nullptr;             ///< samples, planes of channels one after another
  DeviceImages images{};                ///< instead of x, if the network begins with pixels
  const std::int64_t* x_ids = nullptr;  ///< instead of x, if the network begins with ids
  const std::int64_t* labels = nullptr;
  const float* targets = nullptr;
  const std::uint64_t* ids = nullptr;  ///< of samples
  std::span<const std::int64_t> x_ids_on_host{};
};

/// One forward or backward pass.
struct PassContext {
  runtime::Stream& stream;
  runtime::Stream* beside = nullptr;  ///< for gradients of parameters, which no layer of the pass reads; null: `stream`
  DeviceBatch batch{};
  const core::StepNumbers* numbers = nullptr;  ///< in the device's memory
  Hooks* hooks = nullptr;
  bool adds = false;  ///< gradients, to the present values
};

/// The arrays that all programs of an executor share.
template <class T>
struct ExecutorArrays {
  std::span<const SlotPlace> places{};  ///< by parameter
  std::vector<float*> statistics{};
  std::uint32_t* has_bad_label = nullptr;  ///< set to 1 for a bad label or id
  const float* loss_scale = nullptr;       ///< null: 1
  double* shared = nullptr;                ///< for Hooks::sum(): shared_elements() of any layer
};

/// The common data of all programs of an executor.
template <class T>
struct Common {
  const Network& network;
  const ExecutorOptions& options;
  const PassPlan& plan;
  const ParameterLayout& parameters;
  const ExecutorArrays<T>& arrays;
  Convolutions& convolutions;
};

/// Work that a layer enqueues beside the backward pass may run during this many turns; a turn is the next layer with
/// parameters.
constexpr int n_turns_beside = 3;

/// The environment in which the layers of a program are made.
template <class T>
class Builder : public Common<T> {
 public:
  Builder(const Common<T>& common, ProgramMemory& in_memory, std::uint64_t n_samples, bool trains)
      : Common<T>{common}, memory{in_memory}, n{n_samples}, is_training{trains}, values{layouts_of(common.network)} {}

  ProgramMemory& memory;
  const std::uint64_t n;  ///< samples
  const bool is_training;
  const std::vector<ValueLayout> values;  ///< of nodes

  int time = 0;  ///< of PassPlan, when the layer that is being planned is enqueued

  /// Makes memory that is needed from now to its last use().
  template <class U>
  [[nodiscard]] Place<U> make(std::size_t n_elements) {
    return use(memory.make<U>(n_elements));
  }
  [[nodiscard]] Place<T> make_value(const ValueLayout& layout) { return make<T>(n * layout.n_elements()); }
  /// Marks memory that is read or written now. Inputs, outputs and gradients of layers need no call: the program marks
  /// them whenever the layer is enqueued forward, and the gradient of its output backward.
  template <class U>
  Place<U> use(const Place<U>& place) {
    memory.use(place, time);
    return place;
  }

  /// Marks memory that the planned layer reads or writes beside the backward pass.
  template <class U>
  Place<U> hold(const Place<U>& place) {
    memory.hold(place);
    return place;
  }

  [[nodiscard]] const ValueLayout& layout(Value value) const { return values[static_cast<std::size_t>(value.node)]; }
  [[nodiscard]] const float* parameter(int number) const { return place(number).parameters.data(); }
  /// The parameter, as layers multiply by it.
  [[nodiscard]] const T* weight(int number) const {
    if constexpr (std::is_same_v<T, float>)
      return parameter(number);
    else
      return reinterpret_cast<const T*>(place(number).weights.data());
  }
  [[nodiscard]] float* gradient(int number) const { return place(number).gradients.data(); }
  /// Whether the backward pass that is being planned always adds to this gradient.
  [[nodiscard]] bool adds_to_gradient(int number) const { return this->plan.adds(*step_, number); }
  [[nodiscard]] bool needs_gradient(Value value) const {
    return this->plan.needs_gradient[static_cast<std::size_t>(value.node)];
  }

  // As plan_backward() calls them. Nobody overwrites a gradient.
  void begin_backward(const BackwardStep& step) {
    step_ = &step;
    if (!step.completed.empty()) memory.begin_turn(n_turns_beside);
    memory.use_held(time);
  }
  void await(const Place<T>& /*gradient*/) {}
  void take(const Place<T>& gradient) { use(gradient); }
  [[nodiscard]] Place<T> add_up(const Place<T>& /*a*/, const Place<T>& /*b*/, std::size_t node) {
    return make_value(values[node]);
  }

 private:
  [[nodiscard]] const SlotPlace& place(int number) const {
    return this->arrays.places[static_cast<std::size_t>(number)];
  }

  const BackwardStep* step_ = nullptr;  ///< that is being planned
};

template <class T>
class CudaLayer : public PlannedLayer<Builder<T>, Place<T>, PassContext> {
 public:
  /// False if the layer enqueues nothing, because its result is part of another layer or needs no work.
  [[nodiscard]] virtual bool has_work() const noexcept { return true; }
  /// Sends the host's part of the batch, before each forward pass. The rest of the pass may be recorded.
  virtual void send(PassContext& /*pass*/) {}
  /// Whether backward() enqueues work in PassContext::beside; Builder::hold() keeps the memory of that work. Such work
  /// reads no parameters, because Hooks::done() does not wait for it.
  [[nodiscard]] virtual bool runs_beside() const noexcept { return false; }
};

/// No inputs for ids.
template <class T>
using Planned = PlannedNode<Builder<T>, Place<T>>;

/// Each layer of the table has one, in nn/ops/NAME/device.cpp, which ends with LOCKSTEP_FOR_DEVICE_TYPES. Those of
/// Linear and Relu are in the device.cpp of conv and add.
#define LOCKSTEP_DEVICE_LAYER(L) \
  template <class T>             \
  [[nodiscard]] std::unique_ptr<CudaLayer<T>> make_layer(const Planned<T>& planned, const L& layer);
LOCKSTEP_LAYERS(LOCKSTEP_DEVICE_LAYER)
#undef LOCKSTEP_DEVICE_LAYER

/// Instantiates make_layer() of a layer for all types of activations.
#define LOCKSTEP_FOR_DEVICE_TYPES(L)                                                                        \
  template std::unique_ptr<CudaLayer<core::bfloat16>> make_layer(const Planned<core::bfloat16>&, const L&); \
  template std::unique_ptr<CudaLayer<core::float16>> make_layer(const Planned<core::float16>&, const L&);   \
  template std::unique_ptr<CudaLayer<float>> make_layer(const Planned<float>&, const L&);

/// Passes its input on.
template <class T>
class SameLayer final : public CudaLayer<T> {
 public:
  explicit SameLayer(const Planned<T>& planned) { this->output_ = planned.inputs[0]; }
  bool has_work() const noexcept override { return false; }
  void forward(PassContext&) override {}
  std::vector<Place<T>> plan_backward(Builder<T>&, std::span<const Place<T>> gradients) override {
    return {gradients[0]};
  }
  void backward(PassContext&) override {}
};

/// For an Add node that also computes its input `normalized`, a batch normalization: planned.inputs has the input of
/// that normalization in its place.
template <class T>
[[nodiscard]] std::unique_ptr<CudaLayer<T>> make_added_batch_norm(const Planned<T>& planned, const Add& add,
                                                                  Value normalized);

}  // namespace lockstep::nn::cuda
