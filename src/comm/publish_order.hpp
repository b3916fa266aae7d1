// The memory order with which a rank publishes what it wrote to shared memory.
// Invariant: release. Weaker, and a peer may see the flag before the data; a test shows that this is noticed.
// Used by flag.hpp only; a file of its own so that that test can put a weaker one in its place.
#pragma once

#include <atomic>

namespace lockstep::comm {

inline constexpr std::memory_order publish_order = std::memory_order_release;

}  // namespace lockstep::comm
