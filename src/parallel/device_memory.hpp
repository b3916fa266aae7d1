// The arenas in the memory of one rank's device: whole, or only the slices that the rank updates.
// Invariant: addresses never change. What ranks exchange is in one block, which their library can register. Passes
// find everything that they read at its place in a whole arena.
// Used by the synchronizer of devices.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "comm/device_plan.hpp"
#include "optim/cuda/arena.hpp"
#include "parallel/device_division.hpp"
#include "runtime/device.hpp"

namespace lockstep::parallel {

/// Each slot as a segment.
[[nodiscard]] std::vector<optim::Segment> whole_tensors(std::span<const Slot> slots);

class DeviceMemory {
 public:
  /// `weights`: SynchronizerOptions::weights. `n_sums`: numbers that ranks add up, if the arenas are divided. `devices`
  /// may be null.
  DeviceMemory(const DeviceDivision& division, std::size_t rank, core::DType weights, std::size_t n_sums,
               const comm::DeviceGroup* devices);

  /// What this rank updates.
  [[nodiscard]] std::span<const KeptSlice> updated() const noexcept { return updated_; }
  /// The place of a slice in arrays that hold only what this rank updates. The slice is in one of updated().
  [[nodiscard]] core::Slice place_of(const core::Slice& slice) const;
  /// The part of `slice` that this rank updates, which is one; empty if there is none.
  [[nodiscard]] core::Slice updated_in(const core::Slice& slice) const noexcept;

  /// Everything that plans read and write, to register it.
  [[nodiscard]] runtime::DeviceSpan<std::byte> exchanged() const noexcept { return exchanged_.on_device<std::byte>(); }

  [[nodiscard]] runtime::DeviceSpan<float> gradients() const noexcept { return part<float>(0, n_elements_); }
  /// Whether all parameters are here in float32; otherwise those of updated().
  [[nodiscard]] bool has_all_parameters() const noexcept { return has_all_parameters_; }
  /// A slice that is here.
  [[nodiscard]] runtime::DeviceSpan<float> parameters(const core::Slice& slice) const;
  /// Without has_all_parameters(): those of updated(), one slice after another.
  [[nodiscard]] runtime::DeviceSpan<const float> updated_parameters() const noexcept {
    return parameters_.on_device<float>();
  }
  /// As large as the arena. Without has_all_parameters() it has only the slots that no rank divides.
  [[nodiscard]] runtime::DeviceSpan<const float> parameters_of_passes() const noexcept;
  /// All of them; empty if they are float32.
  [[nodiscard]] runtime::DeviceSpan<std::byte> weights() const noexcept;
  [[nodiscard]] optim::cuda::Copy weights(const core::Slice& slice) const noexcept;
  /// What passes read of a slice: weights, or else parameters.
  [[nodiscard]] runtime::DeviceSpan<std::byte> read_by_passes(const core::Slice& slice) const noexcept;
  [[nodiscard]] runtime::DeviceSpan<double> sums() const noexcept { return part<double>(sums_at_, n_sums_); }

 private:
  template <class T>
  [[nodiscard]] runtime::DeviceSpan<T> part(std::size_t at, std::size_t n) const noexcept {
    return runtime::DeviceSpan<T>::at(reinterpret_cast<T*>(exchanged_.on_device<std::byte>().data() + at), n);
  }
  [[nodiscard]] std::byte* first_read() const noexcept;

  std::vector<KeptSlice> updated_;
  std::size_t n_elements_;
  core::DType weights_type_;
  bool divides_, has_all_parameters_;
  std::size_t n_sums_ = 0;
  std::size_t read_at_ = 0, sums_at_ = 0;  ///< in the exchanged memory, in bytes
  runtime::Buffer exchanged_{}, parameters_{}, weights_{};
};

}  // namespace lockstep::parallel
