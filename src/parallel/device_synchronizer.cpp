#include "parallel/device_synchronizer.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/registry.hpp"
#include "core/timer.hpp"
#include "runtime/kernel/numbers.hpp"

namespace lockstep::parallel {
namespace {

using optim::cuda::DeviceOptimizer;
using optim::cuda::StepState;
using runtime::Buffer;
using runtime::DeviceSpan;
using runtime::Memory;

/// Elements of a slot that read() collects at a time.
constexpr std::size_t read_at_a_time = std::size_t{1} << 18;

/// What a rank updates. The first rank counts the squares of what all update.
std::vector<optim::cuda::Run> runs_of(const DeviceDivision& division, const DeviceMemory& memory, std::size_t rank) {
  std::vector<optim::cuda::Run> runs;
  for (const auto& [slice, begin] : memory.updated()) {
    optim::cuda::Run& run = runs.emplace_back(optim::cuda::Run{.n_elements = slice.count});
    run.is_counted = runs.size() <= division.n_divided() || rank == 0;
    for (const auto& [slot, piece] : pieces_in(division.sharding().slots(), slice))
      run.pieces.push_back({slot, piece.seen_from(slice.offset)});
  }
  return runs;
}

DeviceOptimizer make_optimizer(const DeviceDivision& division, const DeviceMemory& memory, std::size_t rank,
                               const SynchronizerOptions& options) {
  const std::span<const Slot> slots = division.sharding().slots();
  const optim::cuda::LossScaling scaling{.is_dynamic = options.scales_loss};
  if (!division.divides())
    return DeviceOptimizer{options.optimizer, whole_tensors(slots), division.sharding().n_elements(), scaling};
  std::vector<bool> decays;
  for (const Slot& slot : slots) decays.push_back(slot.decays);
  return DeviceOptimizer{options.optimizer, decays, runs_of(division, memory, rank), memory.sums(), scaling};
}

}  // namespace

DeviceSynchronizer::DeviceSynchronizer(comm::Transport& world, comm::DeviceGroup* devices,
                                       const std::vector<Slot>& slots, const SynchronizerOptions& options,
                                       Strategy strategy)
    : world_{world},
      devices_{devices},
      only_enqueues_{devices == nullptr || devices->only_enqueues()},
      scales_loss_{options.scales_loss},
      weights_type_{options.weights},
      division_{strategy, slots, options.buckets, static_cast<std::size_t>(world.n_ranks())},
      memory_{division_, owner(), weights_type_, DeviceOptimizer::n_sums(options.optimizer, slots.size()), devices},
      numbers_{core::Bytes{sizeof(core::StepNumbers)}, Memory::device},
      optimizer_{make_optimizer(division_, memory_, owner(), options)},
      guard_{world, division_, memory_, options.guard_interval} {
  core::require(devices != nullptr || world.n_ranks() == 1, "several ranks have a device group for their sums");
  for (Progress& progress : progress_) progress.here = Buffer{core::Bytes{sizeof(StepState)}, Memory::pinned};
  for (const KeptSlice& kept : memory_.updated())
    runs_.push_back(
        {.numbers = numbers_.on_device<core::StepNumbers>(),
         .gradient = DeviceSpan<const float>{memory_.gradients().subspan(kept.slice.offset, kept.slice.count)},
         .parameters = memory_.parameters(kept.slice),
         .copy = memory_.weights(kept.slice)});
  if (world.n_ranks() == 1) return;
  // Not as a window: it is unproven that window kernels give all ranks the same bits.
  if (devices->registers() && !comm::registration_obstacle(comm::Registration::local))
    registered_ = devices->register_memory(memory_.exchanged(), comm::Registration::local);
  make_plans();
}

void DeviceSynchronizer::make_plans() {
  const std::span<const core::Slice> buckets = sharding().buckets();
  const auto plan_of = [this](const comm::Call& call, DeviceSpan<std::byte> from, DeviceSpan<std::byte> to) {
    auto plan = devices_->make_plan(call);
    plan->bind(from, to);
    return plan;
  };
  const auto gradients_in = [this](const core::Slice& slice) {
    return runtime::as_writable_bytes(memory_.gradients().subspan(slice.offset, slice.count));
  };
  cuts_.resize(division_.n_divided());
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    comm::Call call{.dtype = core::DType::float32, .n_elements = buckets[b].count};
    if (b >= division_.n_divided()) {
      plans_.push_back(plan_of(call, gradients_in(buckets[b]), gradients_in(buckets[b])));
      continue;
    }
    const core::Slice& own = sharding().slices_of(owner())[b];
    cuts_[b] = division_.cuts_of(b);
    call.cuts = cuts_[b];
    call.collective = comm::Collective::reduce_scatter;
    plans_.push_back(plan_of(call, gradients_in(buckets[b]), gradients_in(own)));
    call.collective = comm::Collective::all_gather;
    call.dtype = weights_type_;
    gathers_.push_back(plan_of(call, memory_.read_by_passes(own), memory_.read_by_passes(buckets[b])));
  }
  if (!division_.divides()) return;
  const auto sum_of = [&](DeviceSpan<double> sums) {
    const auto bytes = runtime::as_writable_bytes(sums);
    return plan_of({.dtype = core::DType::float64, .n_elements = sums.size()}, bytes, bytes);
  };
  const DeviceSpan<double> sums = memory_.sums();
  squares_plan_ = sum_of(sums.subspan(0, 1));
  if (sums.size() > 1) norms_plan_ = sum_of(sums.subspan(1, sums.size() - 1));
  if (memory_.has_all_parameters()) return;
  read_piece_.resize(1 + read_at_a_time);
  const auto bytes = std::as_writable_bytes(std::span{read_piece_});
  read_plan_ = comm::make_plan(world_, {.dtype = core::DType::uint32, .n_elements = read_piece_.size()});
  read_plan_->bind(bytes, bytes);
}

DeviceSpan<const float> DeviceSynchronizer::loss_scale() const noexcept {
  if (!scales_loss_) return {};
  return DeviceSpan<const float>::at(&optimizer_.progress().data()->loss_scale, 1);
}

DeviceSpan<float> DeviceSynchronizer::array(std::size_t i, const core::Slice& slice) const {
  if (i == 0) return memory_.parameters(slice);
  const core::Slice place = memory_.place_of(slice);
  return optimizer_.state()[i - 1].values.subspan(place.offset, place.count);
}

// After the host has written parameters. Steps write both.
void DeviceSynchronizer::cast_weights(const core::Slice& slice) {
  runtime::Stream stream;
  optim::cuda::cast(stream, memory_.parameters(slice), memory_.weights(slice));
  stream.wait();
}

void DeviceSynchronizer::wait_for_steps() {
  if (stream_ == nullptr) return;
  if (devices_ != nullptr) comm::wait(*stream_, *devices_);  // detects calls that never end
  stream_->wait();
}

void DeviceSynchronizer::fetch(std::size_t i, const core::Slice& slice, std::span<float> to) {
  staging_.fetch(runtime::as_bytes(array(i, slice)), std::as_writable_bytes(to));
}

void DeviceSynchronizer::put(std::size_t i, const core::Slice& slice, std::span<const float> from) {
  staging_.send(std::as_bytes(from), runtime::as_writable_bytes(array(i, slice)));
}

std::span<float> DeviceSynchronizer::fetch_parameters(const core::Slice& slice) {
  wait_for_steps();
  parameters_here_.resize(slice.count);
  fetch(0, slice, parameters_here_);
  return parameters_here_;
}

// What owners alone have arrives in pieces, to whose bits all other ranks add zeros. The first number says whether rank
// 0 lacks memory for the whole; then no rank goes on.
std::span<const float> DeviceSynchronizer::read(std::size_t slot) {
  const core::Slice& whole = sharding().slots()[slot].slice;
  const bool is_reader = world_.rank() == 0;
  if (memory_.has_all_parameters() || !sharding().slots()[slot].unit)
    return is_reader ? fetch_parameters(whole) : std::span<float>{};
  wait_for_steps();
  const auto failure = core::failure_of([&] { parameters_here_.resize(is_reader ? whole.count : 0); });
  const std::span<float> values = std::span{read_piece_}.subspan(1);
  for (std::size_t at = 0; at < whole.count; at += values.size()) {
    const core::Slice piece{whole.offset + at, std::min(values.size(), whole.count - at)};
    std::ranges::fill(read_piece_, 0.0F);
    if (failure) read_piece_.front() = 1;
    const core::Slice own = memory_.updated_in(piece);
    if (!own.empty()) fetch(0, own, own.seen_from(piece.offset).of(values));
    read_plan_->run();
    if (read_piece_.front() != 0) break;
    if (is_reader)
      std::ranges::copy(values.first(piece.count), parameters_here_.begin() + static_cast<std::ptrdiff_t>(at));
  }
  if (failure) throw core::Error{*failure};
  return parameters_here_;
}

template <class F>
void DeviceSynchronizer::Visited::each(const F& f) {
  std::size_t begin = 0;
  for (const core::Slice& slice : slices) {
    for (std::size_t i = 0; i < arrays.size(); ++i)
      f(i, slice, core::Slice{begin, slice.count}.of(std::span{arrays[i]}));
    begin += slice.count;
  }
}

void DeviceSynchronizer::visit(Access access, const std::function<void(const StoredPiece&)>& visitor) {
  if (access == Access::own_parameters) {
    for (const core::Slice& slice : sharding().slices_of(owner()))
      for (const Piece& piece : pieces_in(sharding().slots(), slice))
        visitor({piece, "parameter", fetch_parameters(piece.slice)});
    return;
  }
  visited_ = {};
  Visited all;
  if (access == Access::own)
    all.slices.assign(sharding().slices_of(owner()).begin(), sharding().slices_of(owner()).end());
  else
    for (const KeptSlice& kept : memory_.updated()) all.slices.push_back(kept.slice);
  std::size_t n_elements = 0;
  for (const core::Slice& slice : all.slices) n_elements += slice.count;
  for (std::size_t i = 0; i <= optimizer_.state().size(); ++i) all.arrays.emplace_back(n_elements);
  wait_for_steps();
  all.each([this](std::size_t i, const core::Slice& slice, std::span<float> here) { fetch(i, slice, here); });
  visited_ = std::move(all);
  std::size_t begin = 0;  // of a slice in the arrays
  for (const core::Slice& slice : visited_.slices) {
    for (const Piece& piece : pieces_in(sharding().slots(), slice)) {
      const core::Slice here{begin + piece.slice.offset - slice.offset, piece.slice.count};
      for (std::size_t i = 0; i < visited_.arrays.size(); ++i)
        visitor({piece, i == 0 ? "parameter" : optimizer_.state()[i - 1].name, here.of(std::span{visited_.arrays[i]})});
    }
    begin += slice.count;
  }
}

void DeviceSynchronizer::keep_statistics(DeviceSpan<float> statistics, DeviceSpan<float> kept) {
  statistics_ = statistics;
  kept_statistics_ = kept;
}

// Sends the buckets that all ranks update, one at a time, which limits the host's memory. All ranks but the owner add
// zeros to the bits, not to the values, so every value arrives unchanged.
void DeviceSynchronizer::publish_parameters() {
  if (world_.n_ranks() == 1) return;
  for (std::size_t b = division_.n_divided(); b < sharding().buckets().size(); ++b) {
    const core::Slice& bucket = sharding().buckets()[b];
    const core::Slice& own = sharding().slices_of(owner())[b];
    std::vector<float> values(bucket.count);
    fetch(0, own, own.seen_from(bucket.offset).of(std::span{values}));
    const auto bytes = std::as_writable_bytes(std::span{values});
    const auto plan = comm::make_plan(world_, {.dtype = core::DType::uint32, .n_elements = values.size()});
    plan->bind(bytes, bytes);
    plan->run();
    put(0, bucket, values);
  }
}

void DeviceSynchronizer::gather_parameters() {
  runtime::Stream stream;
  for (const auto& gather : gathers_) gather->run(stream);
  if (devices_ != nullptr) comm::wait(stream, *devices_);
  stream.wait();
}

void DeviceSynchronizer::start(const StartAt& at) {
  n_steps_ = at.n_steps;
  scale_ = at.scale;
  wait_for_steps();
  visited_.each([this](std::size_t i, const core::Slice& slice, std::span<float> here) { put(i, slice, here); });
  visited_ = {};
  publish_parameters();
  for (const KeptSlice& kept : memory_.updated()) cast_weights(kept.slice);
  gather_parameters();
  runtime::Stream stream;
  optimizer_.restart(stream, n_steps_, scale_);
  n_ready_ = 0;
  if (guard_.restart(n_steps_)) record_replica();
}

void DeviceSynchronizer::ready(std::size_t slot, runtime::Stream& stream) {
  if (plans_.empty() || !only_enqueues_) return;
  for (const std::size_t end = sharding().n_complete(slot); n_ready_ < end; ++n_ready_) plans_[n_ready_]->start(stream);
}

template <class F>
void DeviceSynchronizer::waiting(std::size_t bucket, const F& f) {
  if (only_enqueues_) return f();
  const core::Stopwatch watch;
  if (on_wait_) on_wait_(runtime::Wait::bucket, bucket);
  f();
  if (on_wait_) on_wait_(runtime::Wait::nothing, 0);
  waited_ += watch.elapsed().value;
}

// If the host takes part, buckets are summed one after another, so that little memory is used at a time.
void DeviceSynchronizer::sum_rest(runtime::Stream& stream) {
  for (std::size_t i = n_ready_; i < plans_.size(); ++i)
    waiting(i, [&] {
      plans_[i]->start(stream);
      if (!only_enqueues_) plans_[i]->finish(stream);
    });
  for (std::size_t i = 0; only_enqueues_ && i < plans_.size(); ++i) plans_[i]->finish(stream);
  n_ready_ = 0;
}

bool DeviceSynchronizer::step(const core::StepNumbers& numbers, double clip_norm, runtime::Stream& stream) {
  send(numbers, stream);
  enqueue_sent(clip_norm, stream);
  end_step(stream);
  return true;
}

void DeviceSynchronizer::send(const core::StepNumbers& numbers, runtime::Stream& stream) {
  if (guard_.has_to_verify()) {
    wait_for_steps();
    guard_.verify();
  }
  runtime::kernel::put(stream, numbers_.on_device<core::StepNumbers>(), numbers);
}

void DeviceSynchronizer::enqueue_sent(double clip_norm, runtime::Stream& stream) {
  sum_rest(stream);
  if (division_.divides())
    update_parts(clip_norm, stream);
  else
    optimizer_.enqueue(stream, runs_.front(), clip_norm);
  const auto progress = optimizer_.progress();
  runtime::kernel::keep_unless(stream, DeviceSpan<const std::uint32_t>::at(&progress.data()->skips, 1), statistics_,
                               kept_statistics_);
}

// A part travels while the next one is updated.
void DeviceSynchronizer::update_parts(double clip_norm, runtime::Stream& stream) {
  const auto sum = [&](comm::DevicePlan& plan) {
    waiting(0, [&] {
      plan.start(stream);
      plan.finish(stream);
    });
  };
  optimizer_.add_squares(stream, runs_);
  sum(*squares_plan_);
  optimizer_.prepare(stream, runs_.front(), clip_norm);
  if (norms_plan_) {
    optimizer_.add_norms(stream, runs_);
    sum(*norms_plan_);
    optimizer_.adapt(stream, runs_.front());
  }
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    optimizer_.update(stream, i, runs_[i]);
    if (i < gathers_.size()) gathers_[i]->start(stream);
  }
  for (std::size_t i = 0; i < gathers_.size(); ++i) waiting(i, [&] { gathers_[i]->finish(stream); });
}

void DeviceSynchronizer::end_step(runtime::Stream& stream) {
  stream_ = &stream;
  Progress& of_step = progress_[++n_steps_ % progress_.size()];
  stream.copy(of_step.here.bytes(), runtime::as_bytes(optimizer_.progress()));
  of_step.copied = stream.mark();
  visited_ = {};
  if (guard_.count_step(n_steps_)) record_replica();
}

double DeviceSynchronizer::norm(StepBack back) {
  const Progress& of_step = progress_[(n_steps_ + (back == StepBack::last ? 0 : 1)) % progress_.size()];
  if (devices_ != nullptr) comm::wait(of_step.copied, *devices_);
  of_step.copied.wait();
  StepState progress;
  std::memcpy(&progress, of_step.here.bytes().data(), sizeof progress);
  return progress.norm;
}

std::optional<optim::LossScale> DeviceSynchronizer::scale_to_save() {
  if (!scales_loss_ && !scale_) return std::nullopt;
  wait_for_steps();
  StepState now;
  staging_.fetch(runtime::as_bytes(optimizer_.progress()), std::as_writable_bytes(std::span{&now, 1}));
  if (!scales_loss_) return optim::LossScale{scale_->value, scale_->n_good, now.n_steps};
  return optim::LossScale{now.loss_scale, now.n_good, now.n_steps};
}

bool DeviceSynchronizer::flip_bit(std::size_t slot) {
  const core::Slice part = memory_.updated_in(sharding().slots()[slot].slice);
  if (part.empty()) return false;
  const std::span<float> here = fetch_parameters(part);
  parallel::flip_bit(here.front());
  put(0, part, here);
  cast_weights(part);
  visited_ = {};
  return true;
}

void DeviceSynchronizer::record_replica() {
  wait_for_steps();
  guard_.record();
}

}  // namespace lockstep::parallel
