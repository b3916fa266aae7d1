// Repeats an operation of the file system if its failure may be transient.
// Invariant: at most 5 pauses, of about 10, 20, 40, 80 and 160 ms; ranks that failed together do not return together.
// Used by io/file and checkpoint/rank_file.
#pragma once

#include <bit>
#include <cerrno>
#include <cstdint>

#include "core/clock.hpp"
#include "core/rng.hpp"

namespace lockstep::io {

/// EIO and ESTALE come from network file systems whose server is busy or has failed over.
[[nodiscard]] constexpr bool is_transient(int error) noexcept {
  return error == EIO || error == ESTALE || error == EAGAIN || error == EINTR;
}

/// Calls `attempt`, which sets errno and returns a negative number when it fails; returns the last result.
template <class Attempt>
auto with_retries(Attempt&& attempt, const core::Clock& clock = core::real_clock()) {
  constexpr int most_retries = 5;
  auto result = attempt();
  for (int retry = 0; result < 0 && is_transient(errno) && retry < most_retries; ++retry) {
    core::Random jitter{std::bit_cast<std::uint64_t>(clock.now().value), static_cast<std::uint64_t>(retry)};
    clock.sleep({(10 << retry) * 1e-3 * (0.5 + jitter.uniform())});
    result = attempt();
  }
  return result;
}

}  // namespace lockstep::io
