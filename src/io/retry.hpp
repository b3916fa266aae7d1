// Tries an operation of the file system again where it may get over the failure.
// Invariant: at most 5 pauses, of about 10, 20, 40, 80 and 160 ms; ranks that failed together do not return together.
// Used by io/file and checkpoint/rank_file.
#pragma once

#include <cerrno>
#include <chrono>
#include <thread>

#include "core/rng.hpp"

namespace lockstep::io {

/// EIO and ESTALE come from network file systems whose server is busy or has failed over.
[[nodiscard]] constexpr bool is_transient(int error) noexcept {
  return error == EIO || error == ESTALE || error == EAGAIN || error == EINTR;
}

/// Calls `attempt`, which sets errno and returns a negative number when it fails; gives the last result.
template <class Attempt>
auto with_retries(Attempt&& attempt) {
  constexpr int most_retries = 5;
  auto result = attempt();
  for (int retry = 0; result < 0 && is_transient(errno) && retry < most_retries; ++retry) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    core::Random jitter{static_cast<std::uint64_t>(now), static_cast<std::uint64_t>(retry)};
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>{(10 << retry) * (0.5 + jitter.uniform())});
    result = attempt();
  }
  return result;
}

}  // namespace lockstep::io
