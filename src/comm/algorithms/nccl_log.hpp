// What NCCL logs about its connections, which it writes only to a log.
// Invariant: if the user has asked for a log ($NCCL_DEBUG), it is left alone, and nothing is known.
// Used by nccl_cuda.cpp, before any other NCCL call.
#pragma once

#include <string>
#include <string_view>

#include "comm/device_plan.hpp"
#include "core/descriptor.hpp"

namespace lockstep::comm::nccl {

/// The last statement about connections in a log.
[[nodiscard]] Connection read_connection(std::string_view log);

/// A log in memory, for as long as NCCL may write to it, which is until the end of the process.
class Log {
 public:
  static Log& only();

  /// Values of $NCCL_DEBUG, $NCCL_DEBUG_SUBSYS and $NCCL_DEBUG_FILE for NCCL's start, when it reads them; empty if the
  /// user has set them.
  [[nodiscard]] const char* level() const noexcept { return file_ ? "INFO" : ""; }
  [[nodiscard]] const char* subsystems() const noexcept { return file_ ? "INIT,NET" : ""; }
  [[nodiscard]] std::string path() const;
  /// The text written since the last call.
  [[nodiscard]] std::string take();

 private:
  Log();

  core::Descriptor file_{};
  std::size_t n_taken_ = 0;
};

}  // namespace lockstep::comm::nccl
