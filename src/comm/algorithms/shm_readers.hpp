// How a rank writes to shared memory what others read. For a core that is far away, it writes past the caches. It
// writes to several places in turn, so that lines have left the readers' inner caches before they are written again.
// Invariant: only speed depends on it, never a result, so ranks need not agree.
// Used by the shared-memory plans.
//
// A line that another core has read is slow to write again: its copy there must be found and given up first. Measured
// on Zen 4 (AVX-512, 1 MiB of L2, DDR5), one core writes, another reads, GB/s of writing and of reading:
//                                  same L3        other L3
//   256 KiB, plain stores          18, 29         2.0, 15
//   256 KiB, past the caches       28, 12         42, 10
// So it is the writer, not the reader, that is slow across L3s; reading in other orders, prefetching or copying in bulk
// first won nothing there. Near cores pay as well (7 GB/s at 32 KiB), but not for lines that are only in L3.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "comm/algorithms/shm_plans.hpp"
#include "comm/flag.hpp"
#include "comm/loops.hpp"
#include "runtime/memory.hpp"

namespace lockstep::comm {

/// memcpy for spans that may be empty, and then null; they do not overlap.
inline void copy_bytes(std::byte* to, const std::byte* from, std::size_t n_bytes) noexcept {
  if (n_bytes != 0) std::memcpy(to, from, n_bytes);
}

/// The distance to the core of another rank: the time to read a flag that it has just written. That is measured
/// during calls, because the cores of a virtual machine move within seconds.
class PeerDistance {
 public:
  using Clock = std::chrono::steady_clock;

  /// As flag.reached(value), but measures the time.
  bool reached(const FlagWord& flag, std::uint64_t value) noexcept {
    const auto start = Clock::now();
    const std::uint64_t seen = flag.value();
    const auto end = Clock::now();
    if (seen < value) return false;
    if (seen != last_seen_) note(end - start - clock_cost());  // otherwise the line may already have been here
    last_seen_ = seen;
    return true;
  }

  /// Notes the time of a look. The mean of the last few counts, so that an interruption is only one slow look.
  void note(Clock::duration look) noexcept {
    constexpr double slowest = 180;
    const double ns = std::chrono::duration<double, std::nano>(look).count();
    mean_ns_ += (std::clamp(ns, 0.0, slowest) - mean_ns_) / 4;
  }

  /// Zen 4: looks take 10 to 50 ns within an L3, 90 to 180 ns across.
  [[nodiscard]] bool is_far() const noexcept { return mean_ns_ > 70; }

 private:
  static Clock::duration clock_cost() noexcept {
    static const Clock::duration least = [] {
      Clock::duration shortest = Clock::duration::max();
      for (int i = 0; i < 100; ++i) {
        const auto start = Clock::now();
        shortest = std::min(shortest, Clock::now() - start);
      }
      return shortest;
    }();
    return least;
  }

  std::uint64_t last_seen_ = 0;
  double mean_ns_ = 0;
};

/// The other ranks of a plan as readers of what this rank writes.
class Readers {
 public:
  /// `longest_bytes`: the most that is written at once.
  Readers(std::size_t n_ranks, std::size_t longest_bytes, Writing writing)
      : writing_{may_stream(n_ranks, longest_bytes) ? writing : Writing::cached}, distances_(n_ranks) {}

  /// As flag.reached(value), for a flag of `rank`.
  bool reached(std::size_t rank, const FlagWord& flag, std::uint64_t value) noexcept {
    return writing_ == Writing::measured ? distances_[rank].reached(flag, value) : flag.reached(value);
  }

  [[nodiscard]] bool is_far(std::size_t rank) const noexcept {
    return writing_ == Writing::measured ? distances_[rank].is_far() : writing_ == Writing::streaming;
  }
  [[nodiscard]] bool any_is_far() const noexcept {
    for (std::size_t rank = 0; rank < distances_.size(); ++rank)
      if (is_far(rank)) return true;
    return false;
  }

  void copy_for(std::size_t rank, std::byte* to, const std::byte* from, std::size_t n_bytes) const {
    copy(to, from, n_bytes, is_far(rank));
  }
  void copy_for_all(std::byte* to, const std::byte* from, std::size_t n_bytes) const {
    copy(to, from, n_bytes, any_is_far());
  }

 private:
  /// Shorter pieces are faster from cache to cache. Measured with 2 ranks; with many ranks, memory would be the limit.
  static bool may_stream(std::size_t n_ranks, std::size_t longest_bytes) {
    constexpr std::size_t most_ranks = 8;
    constexpr std::size_t shortest = 2048;
    return n_ranks <= most_ranks && longest_bytes >= shortest;
  }

  void copy(std::byte* to, const std::byte* from, std::size_t n_bytes, bool is_far) const {
    if (is_far)
      copy_streaming_(to, from, n_bytes);
    else
      copy_bytes(to, from, n_bytes);
  }

  Writing writing_;
  std::vector<PeerDistance> distances_;  ///< by rank
  void (*copy_streaming_)(std::byte*, const std::byte*, std::size_t) = loops().copy_streaming;
};

/// The number of places to which a rank writes `n_bytes` in turn; at least 2, which plans need. Together they are
/// twice the usual L2, but with those of the other ranks they fill at most half the last-level cache. Near cores, 2
/// ranks: 128 KiB takes 8 instead of 20 us, 64 KiB 5 instead of 11; below 8 KiB two places are faster.
[[nodiscard]] inline std::size_t count_turns(std::size_t n_bytes, std::size_t n_ranks, Writing writing) {
  constexpr std::size_t shortest = 8 * 1024;
  constexpr std::size_t most = 2 * 1024 * 1024;
  if (n_bytes < shortest || writing == Writing::cached) return 2;
  return std::max<std::size_t>(2, std::min(most, runtime::last_level_cache().value / (2 * n_ranks)) / n_bytes);
}

}  // namespace lockstep::comm
