// What NCCL says of itself while it connects, which it writes to a log only.
// Invariant: where the user has asked for a log ($NCCL_DEBUG) that is left alone, and nothing is known.
// Used by nccl_cuda.cpp, before anything else of NCCL's.
#pragma once

#include <string>
#include <string_view>

#include "comm/device_plan.hpp"
#include "core/descriptor.hpp"

namespace lockstep::comm::nccl {

/// The last of its words on that in a log.
[[nodiscard]] Connection read_connection(std::string_view log);

/// A log in memory, for as long as NCCL may write to it, which is to the end of the process.
class Log {
 public:
  static Log& only();

  /// Values of $NCCL_DEBUG, $NCCL_DEBUG_SUBSYS and $NCCL_DEBUG_FILE that NCCL is to find when it begins, and looks at
  /// once; empty where they are the user's.
  [[nodiscard]] const char* level() const noexcept { return file_ ? "INFO" : ""; }
  [[nodiscard]] const char* subsystems() const noexcept { return file_ ? "INIT,NET" : ""; }
  [[nodiscard]] std::string path() const;
  /// What was written since the last call of it.
  [[nodiscard]] std::string take();

 private:
  Log();

  core::Descriptor file_{};
  std::size_t n_taken_ = 0;
};

}  // namespace lockstep::comm::nccl
