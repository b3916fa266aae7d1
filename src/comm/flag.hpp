// Flags in shared memory, by which ranks of a node show their progress without locks.
// Invariant: one writer, many readers, values only grow; a Flag has 128 bytes to itself (two lines, because prefetchers
// fetch pairs).
// Used by shm, hierarchical, the probe of distances and parallel/node_flags.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "comm/publish_order.hpp"
#include "comm/transport.hpp"

namespace lockstep::comm {

inline constexpr std::size_t flag_stride = 128;

/// Zero-initialised memory is a valid one, with value 0.
class FlagWord {
 public:
  /// A rank that has seen `value` also sees everything that this rank wrote before.
  void publish(std::uint64_t value) noexcept { value_.store(value, publish_order); }
  [[nodiscard]] std::uint64_t value() const noexcept { return value_.load(std::memory_order_acquire); }
  [[nodiscard]] bool reached(std::uint64_t wanted) const noexcept { return value() >= wanted; }

 private:
  std::atomic<std::uint64_t> value_;
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
};

/// Shares its lines with nothing else.
class alignas(flag_stride) Flag : public FlagWord {};

/// Tells the processor that this is a waiting loop.
inline void pause_processor() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Checks `reached` until it holds: first without a pause, later yielding between checks.
template <class Reached>
void wait_until(Transport& transport, Reached reached) {
  for (int looks = transport.spin_limit(); looks > 0; --looks) {
    if (reached()) return;
    pause_processor();
  }
  for (std::uint64_t looks = 0; !reached(); ++looks) transport.relax(looks);
}

}  // namespace lockstep::comm
