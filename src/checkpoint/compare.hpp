// The differences between the tensors of two checkpoints.
// Invariant: equal means equal to the bit, including signs of zeros and NaNs, whatever ranks wrote them.
// Used by `lockstep ckpt diff` and `lockstep train --verify-resume`.
#pragma once

#include <cstddef>
#include <string>

#include "checkpoint/reader.hpp"

namespace lockstep::checkpoint {

struct Comparison {
  std::size_t n_equal = 0;  ///< tensors
  std::size_t n_differing = 0;
  std::string first{};  ///< of the first that differs: its name, the first element, both values, how many floats lie
                        ///< between them (ULP); empty if none does
};

/// Compares all tensors of both; two at a time are in memory. Throws as Checkpoint::read().
[[nodiscard]] Comparison compare(const Checkpoint& first, const Checkpoint& second);

}  // namespace lockstep::checkpoint
