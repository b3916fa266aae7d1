#include "parallel/device_memory.hpp"

#include <algorithm>
#include <cstdint>

#include "core/error.hpp"

namespace lockstep::parallel {
namespace {

using runtime::Buffer;
using runtime::DeviceSpan;
using runtime::Memory;

/// Where arrays begin in the exchanged memory, in bytes.
constexpr std::size_t array_alignment = 512;

Buffer floats_on_device(std::size_t n) { return Buffer{core::Bytes{n * sizeof(float)}, Memory::device}; }

}  // namespace

std::vector<optim::Segment> whole_tensors(std::span<const Slot> slots) {
  std::vector<optim::Segment> segments;
  for (const Slot& slot : slots) segments.push_back({slot.slice, slot.decays});
  return segments;
}

DeviceMemory::DeviceMemory(const DeviceDivision& division, std::size_t rank, core::DType weights, std::size_t n_sums,
                           const comm::DeviceGroup* devices)
    : updated_{division.updated_by(rank)},
      n_elements_{division.sharding().n_elements()},
      weights_type_{weights},
      divides_{division.divides()},
      has_all_parameters_{!divides_ || weights == core::DType::float32} {
  std::size_t n_bytes = n_elements_ * sizeof(float);
  const std::size_t read_bytes = n_elements_ * core::size_of(weights);
  if (divides_) {
    n_sums_ = n_sums;
    read_at_ = core::round_up(n_bytes, array_alignment);
    sums_at_ = core::round_up(read_at_ + read_bytes, array_alignment);
    n_bytes = sums_at_ + n_sums_ * sizeof(double);
  } else if (weights != core::DType::float32) {
    weights_ = Buffer{core::Bytes{read_bytes}, Memory::device};
  }
  const bool registers = devices != nullptr && devices->registers();
  exchanged_ = registers ? comm::allocate_to_register(core::Bytes{n_bytes}) : Buffer{{n_bytes}, Memory::device};
  if (!divides_) parameters_ = floats_on_device(n_elements_);
  if (!has_all_parameters_) parameters_ = floats_on_device(parallel::n_elements(updated_));
  if (!divides_) return;
  runtime::Stream stream;  // padding that no step writes
  stream.fill(part<std::byte>(read_at_, n_bytes - read_at_), std::byte{0});
  stream.wait();
}

core::Slice DeviceMemory::place_of(const core::Slice& slice) const {
  for (const KeptSlice& kept : updated_)
    if (intersection(kept.slice, slice) == slice) return {kept.begin + slice.offset - kept.slice.offset, slice.count};
  core::require(slice.empty(), "this rank has the slice");
  return {0, 0};
}

core::Slice DeviceMemory::updated_in(const core::Slice& slice) const noexcept {
  for (const KeptSlice& kept : updated_)
    if (const core::Slice common = intersection(kept.slice, slice); !common.empty()) return common;
  return {};
}

std::byte* DeviceMemory::first_read() const noexcept { return exchanged_.on_device<std::byte>().data() + read_at_; }

DeviceSpan<float> DeviceMemory::parameters(const core::Slice& slice) const {
  if (!divides_) return parameters_.on_device<float>().subspan(slice.offset, slice.count);
  if (has_all_parameters_) return part<float>(read_at_, n_elements_).subspan(slice.offset, slice.count);
  const core::Slice place = place_of(slice);
  return parameters_.on_device<float>().subspan(place.offset, place.count);
}

// Where slots that no rank divides have the offsets of a whole arena. They are the last of this rank's slices, so the
// arena would begin before that memory. An integer may have such an address.
DeviceSpan<const float> DeviceMemory::parameters_of_passes() const noexcept {
  if (has_all_parameters_) return parameters({0, n_elements_});
  const KeptSlice& last = updated_.back();
  const auto address = reinterpret_cast<std::uintptr_t>(parameters_.on_device<float>().data()) +
                       last.begin * sizeof(float) - last.slice.offset * sizeof(float);
  return DeviceSpan<const float>::at(reinterpret_cast<const float*>(address), n_elements_);
}

DeviceSpan<std::byte> DeviceMemory::weights() const noexcept {
  if (weights_type_ == core::DType::float32) return {};
  if (!divides_) return weights_.on_device<std::byte>();
  return DeviceSpan<std::byte>::at(first_read(), n_elements_ * core::size_of(weights_type_));
}

optim::cuda::Copy DeviceMemory::weights(const core::Slice& slice) const noexcept {
  std::byte* const all = weights().data();
  if (weights_type_ == core::DType::bfloat16)
    return DeviceSpan<core::bfloat16>::at(reinterpret_cast<core::bfloat16*>(all) + slice.offset, slice.count);
  if (weights_type_ == core::DType::float16)
    return DeviceSpan<core::float16>::at(reinterpret_cast<core::float16*>(all) + slice.offset, slice.count);
  return {};
}

DeviceSpan<std::byte> DeviceMemory::read_by_passes(const core::Slice& slice) const noexcept {
  const std::size_t of_one = core::size_of(weights_type_);
  return DeviceSpan<std::byte>::at(first_read() + slice.offset * of_one, slice.count * of_one);
}

}  // namespace lockstep::parallel
