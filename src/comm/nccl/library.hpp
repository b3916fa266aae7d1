// NCCL as a library: its version, its errors in our words, and what it logs about its connections.
// Invariant: an error while connecting the ranks, before any work, is the user's to fix (usage); a later one is not
// (system). If the user has asked for a log ($NCCL_DEBUG), it is left alone, and nothing is known.
// Used by the files of this folder.
#pragma once

#include <nccl.h>

#include <string>
#include <string_view>

#include "comm/device_plan.hpp"
#include "core/descriptor.hpp"

namespace lockstep::comm::nccl {

/// Throws core::Error (system) unless the result is a success or still in progress. `comm` may be null.
void check(ncclResult_t result, ncclComm_t comm, std::string_view what);

/// For calls that connect the ranks: throws core::Error (usage) unless the result is a success.
void check_connected(ncclResult_t result, std::string_view what);

/// "2.28.9" of 22809.
[[nodiscard]] std::string to_text(int version);

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
