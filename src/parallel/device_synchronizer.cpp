#include "parallel/device_synchronizer.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/registry.hpp"
#include "core/timer.hpp"
#include "runtime/kernel/numbers.hpp"

namespace lockstep::parallel {
namespace {

using optim::cuda::StepState;
using runtime::Buffer;
using runtime::DeviceSpan;
using runtime::Memory;

Buffer floats_on_device(std::size_t n) { return Buffer{core::Bytes{n * sizeof(float)}, Memory::device}; }

Buffer hashes_on_device(std::size_t n) { return Buffer{core::Bytes{n * sizeof(std::uint64_t)}, Memory::device}; }

Buffer weights_on_device(std::size_t n, core::DType type) {
  return type == core::DType::float32 ? Buffer{} : Buffer{core::Bytes{n * core::size_of(type)}, Memory::device};
}

// The memory that `devices` sums, allocated so that their library can register it.
Buffer sums_on_device(std::size_t n, const comm::DeviceGroup* devices) {
  const bool registers = devices != nullptr && devices->registers();
  return registers ? comm::allocate_to_register(core::Bytes{n * sizeof(float)}) : floats_on_device(n);
}

/// Returns the pieces of whole slots.
std::vector<Piece> whole_pieces(std::span<const Slot> slots) { return pieces_in(slots, {0, arena_elements(slots)}); }

std::vector<optim::Segment> whole_tensors(std::span<const Slot> slots) {
  std::vector<optim::Segment> segments;
  for (const Slot& slot : slots) segments.push_back({slot.slice, slot.decays});
  return segments;
}

}  // namespace

DeviceSynchronizer::DeviceSynchronizer(comm::Transport& world, comm::DeviceGroup* devices,
                                       const std::vector<Slot>& slots, const SynchronizerOptions& options)
    : world_{world},
      devices_{devices},
      only_enqueues_{devices == nullptr || devices->only_enqueues()},
      scales_loss_{options.scales_loss},
      sharding_{slots, plan_buckets(slots, options.buckets), static_cast<std::size_t>(world.n_ranks())},
      weights_type_{options.weights},
      parameters_{floats_on_device(sharding_.n_elements())},
      gradients_{sums_on_device(sharding_.n_elements(), devices)},
      weights_{weights_on_device(sharding_.n_elements(), weights_type_)},
      numbers_{core::Bytes{sizeof(core::StepNumbers)}, Memory::device},
      optimizer_{
          options.optimizer, whole_tensors(sharding_.slots()), sharding_.n_elements(), {.is_dynamic = scales_loss_}},
      guard_{sharding_.slots(), whole_pieces(sharding_.slots()), world, world,
             world.n_ranks() > 1 ? options.guard_interval : 0} {
  core::require(devices != nullptr || world.n_ranks() == 1, "several ranks have a device group for their sums");
  for (Progress& progress : progress_) progress.here = Buffer{core::Bytes{sizeof(StepState)}, Memory::pinned};
  if (world.n_ranks() == 1) return;
  if (options.guard_interval > 0) {
    hashes_by_piece_ = hashes_on_device(optimizer_.pieces().size());
    hashes_by_slot_ = hashes_on_device(optimizer_.ranges().size());
  }
  // Not as a window: it is unproven that window kernels give all ranks the same bits.
  if (devices->registers() && !comm::registration_obstacle(comm::Registration::local))
    registered_ = devices->register_memory(gradients_.on_device<std::byte>(), comm::Registration::local);
  for (const core::Slice& bucket : sharding_.buckets()) {
    plans_.push_back(devices->make_plan({.dtype = core::DType::float32, .n_elements = bucket.count}));
    const auto bytes = runtime::as_writable_bytes(
        DeviceSpan<float>::at(gradients_.on_device<float>().data() + bucket.offset, bucket.count));
    plans_.back()->bind(bytes, bytes);
  }
}

DeviceSpan<const float> DeviceSynchronizer::loss_scale() const noexcept {
  if (!scales_loss_) return {};
  return DeviceSpan<const float>::at(&optimizer_.progress().data()->loss_scale, 1);
}

DeviceSpan<float> DeviceSynchronizer::array(std::size_t i) const noexcept {
  return i == 0 ? parameters_.on_device<float>() : optimizer_.state()[i - 1].values;
}

optim::cuda::Copy DeviceSynchronizer::weights_in(const core::Slice& slice) const noexcept {
  if (weights_type_ == core::DType::bfloat16)
    return weights_.on_device<core::bfloat16>().subspan(slice.offset, slice.count);
  if (weights_type_ == core::DType::float16)
    return weights_.on_device<core::float16>().subspan(slice.offset, slice.count);
  return {};
}

// After the host has written parameters. Steps write both.
void DeviceSynchronizer::cast_weights(const core::Slice& slice) {
  runtime::Stream stream;
  optim::cuda::cast(stream, array(0).subspan(slice.offset, slice.count), weights_in(slice));
  stream.wait();
}

void DeviceSynchronizer::wait_for_steps() {
  if (stream_ == nullptr) return;
  if (devices_ != nullptr) comm::wait(*stream_, *devices_);  // detects calls that never end
  stream_->wait();
}

void DeviceSynchronizer::fetch(std::size_t i, const core::Slice& slice, std::span<float> to) {
  staging_.fetch(runtime::as_bytes(array(i).subspan(slice.offset, slice.count)), std::as_writable_bytes(to));
}

void DeviceSynchronizer::put(std::size_t i, const core::Slice& slice, std::span<const float> from) {
  staging_.send(std::as_bytes(from), runtime::as_writable_bytes(array(i).subspan(slice.offset, slice.count)));
}

std::span<float> DeviceSynchronizer::fetch_parameters(const core::Slice& slice) {
  wait_for_steps();
  parameters_here_.resize(slice.count);
  fetch(0, slice, parameters_here_);
  return parameters_here_;
}

std::span<const float> DeviceSynchronizer::read(std::size_t slot) {
  if (world_.rank() != 0) return {};
  return fetch_parameters(sharding_.slots()[slot].slice);
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
    for (const core::Slice& slice : sharding_.slices_of(owner()))
      for (const Piece& piece : pieces_in(sharding_.slots(), slice))
        visitor({piece, "parameter", fetch_parameters(piece.slice)});
    return;
  }
  visited_ = {};
  const core::Slice whole{0, sharding_.n_elements()};
  const std::span<const core::Slice> slices =
      access == Access::own ? sharding_.slices_of(owner()) : std::span{&whole, 1};
  std::size_t n_elements = 0;
  for (const core::Slice& slice : slices) n_elements += slice.count;
  Visited all{.slices = {slices.begin(), slices.end()}};
  for (std::size_t i = 0; i <= optimizer_.state().size(); ++i) all.arrays.emplace_back(n_elements);
  wait_for_steps();
  all.each([this](std::size_t i, const core::Slice& slice, std::span<float> here) { fetch(i, slice, here); });
  visited_ = std::move(all);
  std::size_t begin = 0;  // of a slice in the arrays
  for (const core::Slice& slice : visited_.slices) {
    for (const Piece& piece : pieces_in(sharding_.slots(), slice)) {
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

// One bucket at a time, which limits the host's memory. All ranks but the owner add zeros to the bits, not to the
// values, so every value arrives unchanged.
void DeviceSynchronizer::publish_parameters() {
  if (world_.n_ranks() == 1) return;
  for (std::size_t b = 0; b < sharding_.buckets().size(); ++b) {
    const core::Slice& bucket = sharding_.buckets()[b];
    const core::Slice& own = sharding_.slices_of(owner())[b];
    std::vector<float> values(bucket.count);
    fetch(0, own, own.seen_from(bucket.offset).of(std::span{values}));
    const auto bytes = std::as_writable_bytes(std::span{values});
    const auto plan = comm::make_plan(world_, {.dtype = core::DType::uint32, .n_elements = values.size()});
    plan->bind(bytes, bytes);
    plan->run();
    put(0, bucket, values);
  }
}

void DeviceSynchronizer::start(const StartAt& at) {
  n_steps_ = at.n_steps;
  scale_ = at.scale;
  wait_for_steps();
  visited_.each([this](std::size_t i, const core::Slice& slice, std::span<float> here) { put(i, slice, here); });
  visited_ = {};
  publish_parameters();
  cast_weights({0, sharding_.n_elements()});
  runtime::Stream stream;
  optimizer_.restart(stream, n_steps_, scale_);
  n_ready_ = 0;
  if (guard_.restart(n_steps_)) record_replica();
}

void DeviceSynchronizer::ready(std::size_t slot, runtime::Stream& stream) {
  if (plans_.empty() || !only_enqueues_) return;
  for (const std::size_t end = sharding_.n_complete(slot); n_ready_ < end; ++n_ready_) plans_[n_ready_]->start(stream);
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
  runtime::kernel::put(stream, numbers_.on_device<core::StepNumbers>(), numbers);
}

void DeviceSynchronizer::enqueue_sent(double clip_norm, runtime::Stream& stream) {
  sum_rest(stream);
  optimizer_.enqueue(stream,
                     {.numbers = numbers_.on_device<core::StepNumbers>(),
                      .gradient = arenas().gradients,
                      .parameters = parameters_.on_device<float>(),
                      .copy = weights_in({0, sharding_.n_elements()})},
                     clip_norm);
  const auto progress = optimizer_.progress();
  runtime::kernel::keep_unless(stream, DeviceSpan<const std::uint32_t>::at(&progress.data()->skips, 1), statistics_,
                               kept_statistics_);
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
  const core::Slice& slice = sharding_.slots()[slot].slice;
  if (slice.count == 0) return false;
  const std::span<float> here = fetch_parameters(slice);
  parallel::flip_bit(here.front());
  put(0, slice, here);
  cast_weights(slice);
  visited_ = {};
  return true;
}

// On the device, so that one number for each slot travels. Pieces of the guard are whole slots.
void DeviceSynchronizer::record_replica() {
  wait_for_steps();
  const auto by_piece = hashes_by_piece_.on_device<std::uint64_t>();
  const auto by_slot = hashes_by_slot_.on_device<std::uint64_t>();
  runtime::Stream stream;
  optim::cuda::hash_pieces(stream, parameters_.on_device<float>(), optimizer_.pieces(), by_piece);
  optim::cuda::add_up(stream, DeviceSpan<const std::uint64_t>{by_piece}, optimizer_.ranges(), by_slot);
  stream.wait();
  std::vector<std::uint64_t> hashes(by_slot.size());
  staging_.fetch(runtime::as_bytes(by_slot), std::as_writable_bytes(std::span{hashes}));
  guard_.set_replica_hash(guard_.record([&](const Piece& piece) { return hashes[piece.slot]; }));
}

}  // namespace lockstep::parallel
