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
  const Cut parts = cut(segments);
  runs_.push_back({.elements = {0, n_elements}, .pieces = {0, parts.pieces.size()}});
  allocate(parts, n_elements);
}

DeviceOptimizer::DeviceOptimizer(const OptimizerSpec& spec, const std::vector<bool>& decays, std::span<const Run> runs,
                                 DeviceSpan<double> sums, const LossScaling& scaling)
    : spec_{spec}, scaling_{scaling}, sums_{sums} {
  core::require(sums.size() == n_sums(spec, decays.size()), "there is room for all sums");
  Cut all;
  for (const bool decay : decays) all.ranges.push_back({.first_piece = 0, .n_pieces = 0, .decays = decay});
  std::vector<PieceRange> counted(1 + decays.size());
  std::size_t n_elements = 0;
  for (const Run& run : runs) {
    const std::size_t first = all.pieces.size();
    for (const RunPiece& piece : run.pieces) {
      PieceRange& range = all.ranges.at(piece.tensor);
      if (range.n_pieces == 0) range.first_piece = static_cast<std::uint32_t>(all.pieces.size());
      const Segment segment{piece.slice};
      for (BlockPiece block : cut({&segment, 1}).pieces) {
        block.range = static_cast<std::uint32_t>(piece.tensor);
        all.pieces.push_back(block);
      }
      range.n_pieces = static_cast<std::uint32_t>(all.pieces.size()) - range.first_piece;
      if (run.is_counted) counted[1 + piece.tensor] = range;
    }
    runs_.push_back({.elements = {n_elements, run.n_elements}, .pieces = {first, all.pieces.size() - first}});
    n_elements += run.n_elements;
    core::require(!run.is_counted || counted[0].n_pieces == first, "counted runs precede the others");
    if (run.is_counted) counted[0].n_pieces = static_cast<std::uint32_t>(all.pieces.size());
  }
  counted_ = upload(counted);
  allocate(all, n_elements);
}

void DeviceOptimizer::allocate(const Cut& parts, std::size_t n_elements) {
  check(spec_);
  pieces_ = upload(parts.pieces);
  ranges_ = upload(parts.ranges);
  squares_ = make_array<double>(parts.pieces.size());
  progress_ = make_array<StepState>(1);
  numbers_ = make_array<std::byte>(parts.ranges.size() * device_rule(spec_.kind).numbers_bytes);
  if (needs_norms(spec_.kind)) {
    by_piece_ = {make_array<double>(parts.pieces.size()), make_array<double>(parts.pieces.size())};
    if (sums_.size() == 0)
      by_range_ = {make_array<double>(parts.ranges.size()), make_array<double>(parts.ranges.size())};
  }
  for (const std::string_view name : state_names(spec_)) {
    arrays_.push_back(make_array<float>(n_elements));
    state_.push_back({name, arrays_.back().on_device<float>()});
  }
  Stream stream;
  restart(stream, 0);
}

Preparation DeviceOptimizer::preparation(const Operands& on, DeviceSpan<const double> squares, double max_norm) const {
  return {.step = on.numbers,
          .state = progress_.on_device<StepState>(),
          .ranges = ranges_.on_device<PieceRange>(),
          .squares = squares,
          .spec = spec_,
          .max_norm = max_norm,
          .scaling = scaling_};
}

StepArrays DeviceOptimizer::arrays_of(const PlannedRun& run, const Operands& on) const {
  StepArrays step{.gradient = on.gradient,
                  .parameters = on.parameters,
                  .copy = on.copy,
                  .pieces = pieces_.on_device<BlockPiece>().subspan(run.pieces.offset, run.pieces.count),
                  .done = progress_.on_device<StepState>()};
  for (std::size_t i = 0; i < state_.size(); ++i)
    step.state[i] = state_[i].values.subspan(run.elements.offset, run.elements.count);
  return step;
}

void DeviceOptimizer::enqueue(Stream& stream, const Operands& on, double max_norm) {
  const auto squares = squares_.on_device<double>();
  squared_norms(stream, on.gradient, pieces_.on_device<BlockPiece>(), squares);
  const auto squares_in = [](const std::array<Buffer, 2>& arrays) {
    return Squares{arrays[0].on_device<double>(), arrays[1].on_device<double>()};
  };
  enqueue_step(stream, preparation(on, squares, max_norm), arrays_of(runs_.front(), on),
               numbers_.on_device<std::byte>(), squares_in(by_piece_), squares_in(by_range_));
}

void DeviceOptimizer::add_squares(Stream& stream, std::span<const Operands> runs) {
  const auto squares = squares_.on_device<double>();
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    const core::Slice& pieces = runs_[i].pieces;
    if (!pieces.empty())
      squared_norms(stream, runs[i].gradient, pieces_.on_device<BlockPiece>().subspan(pieces.offset, pieces.count),
                    squares.subspan(pieces.offset, pieces.count));
  }
  add_up(stream, DeviceSpan<const double>{squares}, counted_.on_device<PieceRange>().subspan(0, 1),
         sums_.subspan(0, 1));
}

void DeviceOptimizer::prepare(Stream& stream, const Operands& any, double max_norm) {
  device_rule(spec_.kind)
      .prepare(stream, preparation(any, sums_.subspan(0, 1), max_norm), numbers_.on_device<std::byte>());
}

/// Returns the sums of squares of tensors: 0: of their parameters, 1: of their updates.
DeviceSpan<double> DeviceOptimizer::sums_of_tensors(std::size_t i) const {
  const std::size_t n = (sums_.size() - 1) / 2;
  return sums_.subspan(1 + i * n, n);
}

void DeviceOptimizer::add_norms(Stream& stream, std::span<const Operands> runs) {
  const DeviceRule& rule = device_rule(spec_.kind);
  const auto of_piece = [&](const Buffer& numbers, const core::Slice& pieces) {
    return numbers.on_device<double>().subspan(pieces.offset, pieces.count);
  };
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    const core::Slice& pieces = runs_[i].pieces;
    if (pieces.empty()) continue;
    const StepArrays step = arrays_of(runs_[i], runs[i]);
    if (rule.measure != nullptr)
      rule.measure(stream, step, numbers_.on_device<std::byte>(),
                   {of_piece(by_piece_[0], pieces), of_piece(by_piece_[1], pieces)});
    else
      squared_norms(stream, DeviceSpan<const float>{step.parameters}, step.pieces, of_piece(by_piece_[0], pieces));
  }
  const Buffer& of_update = rule.measure != nullptr ? by_piece_[1] : squares_;
  const auto counted = counted_.on_device<PieceRange>().subspan(1, sums_of_tensors(0).size());
  add_up(stream, DeviceSpan<const double>{by_piece_[0].on_device<double>()}, counted, sums_of_tensors(0));
  add_up(stream, DeviceSpan<const double>{of_update.on_device<double>()}, counted, sums_of_tensors(1));
}

void DeviceOptimizer::adapt(Stream& stream, const Operands& any) {
  device_rule(spec_.kind)
      .adapt(stream, preparation(any, {}, 0), {sums_of_tensors(0), sums_of_tensors(1)},
             numbers_.on_device<std::byte>());
}

void DeviceOptimizer::update(Stream& stream, std::size_t run, const Operands& on) {
  if (runs_[run].pieces.empty()) return;
  device_rule(spec_.kind).update(stream, arrays_of(runs_[run], on), numbers_.on_device<std::byte>());
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
