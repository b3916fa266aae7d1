// An open file of the operating system.
// Invariant: closed exactly once; -1 is none.
// Used by all code that opens files.
#pragma once

#include <unistd.h>

#include "core/handle.hpp"

namespace lockstep::core {

struct DescriptorPolicy {
  using Raw = int;
  static Raw null() noexcept { return -1; }
  static void destroy(Raw raw) noexcept { ::close(raw); }
};
using Descriptor = UniqueHandle<DescriptorPolicy>;

}  // namespace lockstep::core
