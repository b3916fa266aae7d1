// The memory order by which a rank publishes its writes to shared memory.
// Invariant: release. With a weaker order, a peer may see the flag before the data; a test shows that this is detected.
// Used by flag.hpp only; a separate file so that the test can replace it by a weaker one.
#pragma once

#include <atomic>

namespace lockstep::comm {

inline constexpr std::memory_order publish_order = std::memory_order_release;

}  // namespace lockstep::comm
