#include "optim/cuda/device_optimizer.hpp"

#include <algorithm>

#include "optim/cuda/arena.hpp"
#include "optim/cuda/device_rule.hpp"
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

DeviceOptimizer::DeviceOptimizer(const OptimizerSpec& spec, std::span<const Segment> segments, std::size_t n_elements,
                                 const LossScaling& scaling)
    : spec_{spec}, scaling_{scaling} {
  check(spec);
  const Cut parts = cut(segments);
  pieces_ = upload(parts.pieces);
  ranges_ = upload(parts.ranges);
  squares_ = make_array<double>(parts.pieces.size());
  progress_ = make_array<StepState>(1);
  numbers_ = make_array<std::byte>(parts.ranges.size() * device_rule(spec.kind).numbers_bytes);
  if (needs_norms(spec.kind)) {
    by_piece_ = {make_array<double>(parts.pieces.size()), make_array<double>(parts.pieces.size())};
    by_range_ = {make_array<double>(parts.ranges.size()), make_array<double>(parts.ranges.size())};
  }
  for (const std::string_view name : state_names(spec)) {
    arrays_.push_back(make_array<float>(n_elements));
    state_.push_back({name, arrays_.back().on_device<float>()});
  }
  Stream stream;
  restart(stream, 0);
}

void DeviceOptimizer::enqueue(Stream& stream, const Operands& on, double max_norm) {
  const auto pieces = pieces_.on_device<BlockPiece>();
  const auto squares = squares_.on_device<double>();
  squared_norms(stream, on.gradient, pieces, squares);
  const Preparation preparation{.step = on.numbers,
                                .state = progress_.on_device<StepState>(),
                                .ranges = ranges_.on_device<PieceRange>(),
                                .squares = squares,
                                .spec = spec_,
                                .max_norm = max_norm,
                                .scaling = scaling_};
  StepArrays step{.gradient = on.gradient,
                  .parameters = on.parameters,
                  .copy = on.copy,
                  .pieces = pieces,
                  .done = progress_.on_device<StepState>()};
  for (std::size_t i = 0; i < state_.size(); ++i) step.state[i] = state_[i].values;
  const auto squares_in = [](const std::array<Buffer, 2>& arrays) {
    return Squares{arrays[0].on_device<double>(), arrays[1].on_device<double>()};
  };
  enqueue_step(stream, preparation, step, numbers_.on_device<std::byte>(), squares_in(by_piece_),
               squares_in(by_range_));
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
