// FNV-1a (Fowler, Noll and Vo; draft-eastlake-fnv), 64 bits: a hash of short texts that is the same in every process.
// Invariant: not std::hash, which may differ between libraries; no protection against deliberate collisions.
// Used by runtime/ (boards by job) and nn/ (streams of random numbers by tensor name).
#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep::core {

[[nodiscard]] constexpr std::uint64_t fnv1a(std::string_view text) noexcept {
  std::uint64_t value = 0xcbf2'9ce4'8422'2325;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x100'0000'01b3;
  return value;
}

}  // namespace lockstep::core
