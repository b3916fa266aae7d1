#include "optim/cuda/device_optimizer.hpp"

#include <algorithm>

#include "optim/cuda/norms.hpp"
#include "optim/cuda/prepare.hpp"
#include "optim/cuda/updates.hpp"
#include "runtime/staging.hpp"

namespace lockstep::optim::cuda {
namespace {

using runtime::Buffer;
using runtime::Memory;

template <class T>
Buffer make_array(std::size_t n) {
  return Buffer{core::Bytes{n * sizeof(T)}, Memory::device};
}

template <class T>
Buffer upload(const std::vector<T>& values) {
  Buffer there = make_array<T>(values.size());
  runtime::Staging{core::Bytes{std::max<std::size_t>(1, values.size() * sizeof(T))}}.send(
      std::as_bytes(std::span{values}), there.on_device<std::byte>());
  return there;
}

}  // namespace

/// The kernels of a step.
struct DeviceOptimizer::Launch {
  Stream& stream;
  const Preparation& preparation;
  const Step& step;
  std::span<const Buffer> partials;

  void operator()(DeviceSpan<SgdNumbers> numbers) const {
    prepare(stream, preparation, numbers);
    sgd(stream, step, numbers);
  }
  void operator()(DeviceSpan<AdamNumbers> numbers) const {
    prepare(stream, preparation, numbers);
    adam(stream, step, numbers);
  }
  void operator()(DeviceSpan<AdadeltaNumbers> numbers) const {
    prepare(stream, preparation, numbers);
    adadelta(stream, step, numbers);
  }
  void operator()(DeviceSpan<LarsNumbers> numbers) const {
    prepare(stream, preparation, numbers);
    squared_norms(stream, DeviceSpan<const float>{step.parameters}, step.pieces, partial(0));
    const Norms norms{total(0), total(1)};
    add_up(stream, partial(0), preparation.ranges, total(0));
    add_up(stream, preparation.squares, preparation.ranges, total(1));
    adapt(stream, preparation, norms, numbers);
    lars(stream, step, numbers);
  }
  void operator()(DeviceSpan<LambNumbers> numbers) const {
    prepare(stream, preparation, numbers);
    lamb_moments(stream, step, numbers, {partial(0), partial(1)});
    for (const std::size_t i : {0, 1}) add_up(stream, partial(i), preparation.ranges, total(i));
    adapt(stream, preparation, Norms{total(0), total(1)}, numbers);
    lamb(stream, step, numbers);
  }

  [[nodiscard]] DeviceSpan<double> partial(std::size_t i) const { return partials[i].on_device<double>(); }
  [[nodiscard]] DeviceSpan<double> total(std::size_t i) const { return partials[2 + i].on_device<double>(); }
};

DeviceOptimizer::DeviceOptimizer(const OptimizerSpec& spec, std::span<const Segment> segments, std::size_t n_elements,
                                 const LossScaling& scaling)
    : spec_{spec}, scaling_{scaling} {
  check(spec);
  const Cut parts = cut(segments);
  pieces_ = upload(parts.pieces);
  ranges_ = upload(parts.ranges);
  squares_ = make_array<double>(parts.pieces.size());
  progress_ = make_array<StepState>(1);
  numbers_ = numbers_of(spec.kind, parts.ranges.size());
  Optimizer of_host{spec, {}, 0};  // lists the states to keep
  if (of_host.needs_norms())
    for (const std::size_t n : {parts.pieces.size(), parts.pieces.size(), parts.ranges.size(), parts.ranges.size()})
      partials_.push_back(make_array<double>(n));
  for (const State& state : of_host.state()) {
    arrays_.push_back(make_array<float>(n_elements));
    state_.push_back({state.name, arrays_.back().on_device<float>()});
  }
  Stream stream;
  restart(stream, 0);
}

template <class T>
DeviceOptimizer::Numbers DeviceOptimizer::make_numbers(std::size_t n_ranges) {
  numbers_memory_ = make_array<T>(n_ranges);
  return numbers_memory_.on_device<T>();
}

DeviceOptimizer::Numbers DeviceOptimizer::numbers_of(OptimizerKind kind, std::size_t n_ranges) {
  switch (kind) {
    case OptimizerKind::sgd: return make_numbers<SgdNumbers>(n_ranges);
    case OptimizerKind::adam:
    case OptimizerKind::adamw: return make_numbers<AdamNumbers>(n_ranges);
    case OptimizerKind::adadelta: return make_numbers<AdadeltaNumbers>(n_ranges);
    case OptimizerKind::lars: return make_numbers<LarsNumbers>(n_ranges);
    case OptimizerKind::lamb: break;
  }
  return make_numbers<LambNumbers>(n_ranges);
}

void DeviceOptimizer::enqueue(Stream& stream, const Operands& on, double max_norm) {
  const auto pieces = pieces_.on_device<Piece>();
  const auto squares = squares_.on_device<double>();
  squared_norms(stream, on.gradient, pieces, squares);
  const Preparation preparation{.step = on.numbers,
                                .state = progress_.on_device<StepState>(),
                                .ranges = ranges_.on_device<PieceRange>(),
                                .squares = squares,
                                .spec = spec_,
                                .max_norm = max_norm,
                                .scaling = scaling_};
  Step step{.gradient = on.gradient,
            .parameters = on.parameters,
            .copy = on.copy,
            .pieces = pieces,
            .done = progress_.on_device<StepState>()};
  for (std::size_t i = 0; i < state_.size(); ++i) step.state[i] = state_[i].values;
  std::visit(Launch{stream, preparation, step, partials_}, numbers_);
}

void DeviceOptimizer::restart(Stream& stream, std::uint64_t n_steps, const std::optional<LossScale>& scale) {
  stream.wait();
  StepState state{.n_steps = scale ? scale->n_updates : n_steps};
  if (scaling_.is_dynamic) state.loss_scale = scale ? scale->value : scaling_.initial;
  if (scaling_.is_dynamic && scale) state.n_good = scale->n_good;
  runtime::Staging{core::Bytes{sizeof state}}.send(std::as_bytes(std::span{&state, 1}),
                                                   progress_.on_device<std::byte>());
}

}  // namespace lockstep::optim::cuda
