// A publish order too weak on purpose, in place of src/comm/publish_order.hpp: the thread sanitizer must report it.
#pragma once

#include <atomic>

namespace lockstep::comm {

inline constexpr std::memory_order publish_order = std::memory_order_relaxed;

}  // namespace lockstep::comm
