// A class number as the label of a sample.
// Invariant: least significant byte first, as many bytes as the label has.
// Used by data/importers/images.cpp and data/synth/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep::data {

inline void store_label(std::uint64_t label, std::span<std::byte> y) noexcept {
  for (std::byte& byte : y) {
    byte = static_cast<std::byte>(label);
    label >>= 8;
  }
}

}  // namespace lockstep::data
