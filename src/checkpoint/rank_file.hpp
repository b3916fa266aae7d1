// The file that one rank writes of each checkpoint: HDF5 lays it out once, and then all bytes are written directly.
// Invariant: each byte is written once, from front to back; digests cover what was written, which is not read again.
// Used by the writer of checkpoints.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/box.hpp"
#include "checkpoint/index.hpp"
#include "io/hdf5.hpp"
#include "runtime/fault.hpp"

namespace lockstep::checkpoint {

class RankFile {
 public:
  /// Lays the file out, by a temporary file in `folder`. Throws core::Error: (usage) if this rank does not see the
  /// folder, else (system).
  RankFile(const std::string& folder, int rank, std::vector<Box> boxes);

  [[nodiscard]] const std::vector<Box>& boxes() const noexcept { return boxes_; }
  /// Writes a new file in `folder`, and syncs it to the disk; one box at a time is in memory. Calls `fill` once for
  /// each box, and again if a transient error makes it write the file again. Does not call HDF5. `drill` is told each
  /// write and sync, and may make it fail; null without faults. Throws core::Error (system).
  [[nodiscard]] FileRecord write(const std::string& folder, const FillBox& fill, runtime::Drill* drill = nullptr) const;

 private:
  void lay_out(const std::string& path);
  [[nodiscard]] int write_once(const std::string& path, const FillBox& fill, runtime::Drill* drill,
                               FileRecord& record) const;

  std::string name_;
  std::vector<Box> boxes_;
  std::vector<io::Extent> places_{};      ///< of the boxes' values
  std::vector<std::size_t> order_{};      ///< the order of boxes in the file
  std::vector<std::byte> surrounding_{};  ///< all bytes except the values
};

}  // namespace lockstep::checkpoint
