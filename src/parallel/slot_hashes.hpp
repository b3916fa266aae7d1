// Hashes of slots, computed on the device that has them, so that one number for each slot travels.
// Invariant: a hash depends on the bits of the elements and on their places.
// Used by the synchronizer of devices, for its guard.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "optim/cuda/arena.hpp"
#include "runtime/device.hpp"
#include "runtime/staging.hpp"

namespace lockstep::parallel {

class SlotHashes {
 public:
  SlotHashes() = default;
  /// `slots`: of each slot, what is hashed of it, as optim::cuda::cut() takes it; several slots may have nothing.
  explicit SlotHashes(std::span<const optim::Segment> slots);
  /// The same for elements of 16 bits, two of which count as one float.
  [[nodiscard]] static SlotHashes of_16_bits(std::span<const optim::Segment> slots);

  /// Waits. Other streams must be done with `values`.
  [[nodiscard]] std::vector<std::uint64_t> of(runtime::DeviceSpan<const float> values, runtime::Staging& staging) const;

 private:
  explicit SlotHashes(const optim::cuda::Cut& cut);

  runtime::Buffer pieces_{}, ranges_{}, by_piece_{}, by_slot_{};
};

}  // namespace lockstep::parallel
