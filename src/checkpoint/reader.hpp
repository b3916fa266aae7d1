// Reads checkpoints: only whole ones, and by any number of ranks.
// Invariant: a checkpoint is verified completely before anything is read from it; all ranks read the same one, or none.
// Links in its folder are not followed. What this rank has verified stays readable even if a run removes it.
// Used by the trainer.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/box.hpp"
#include "checkpoint/index.hpp"
#include "core/error.hpp"
#include "core/units.hpp"
#include "io/folder.hpp"
#include "io/hdf5.hpp"
#include "runtime/communicator.hpp"

namespace lockstep::checkpoint {

class Checkpoint {
 public:
  /// Reads and verifies the index, and opens the files. Throws core::Error (failed) with the reason if it is incomplete
  /// or damaged, (usage) if it has a newer format, is impossible, or does not exist.
  explicit Checkpoint(const std::string& path);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// The content passed to write_checkpoint().
  [[nodiscard]] const std::string& content() const noexcept { return index_.content; }
  [[nodiscard]] std::size_t n_files() const noexcept { return index_.files.size(); }
  /// Throws core::Error (failed) if a byte of file number `i` differs from what was written, (usage) if the file does
  /// not match the index.
  void verify(std::size_t i) const;

  /// Whether it still has its name.
  [[nodiscard]] bool is_in_place() const noexcept;
  [[nodiscard]] core::Bytes bytes() const noexcept;  ///< of its files
  /// Throws core::Error (failed) unless all files exist and have their sizes.
  void check_files() const;
  /// All tensors, sorted by name.
  [[nodiscard]] std::vector<Box> tensors() const;
  /// The whole tensor; nothing if none has this name.
  [[nodiscard]] std::optional<Box> find(const std::string& tensor) const;
  /// Throws core::Error (failed) if `box` is missing, or has a different shape.
  void read(const Box& box, std::span<float> values) const;

 private:
  /// The parts of a file that are open so far.
  struct Opened {
    std::shared_ptr<io::File> file{};
    std::shared_ptr<io::Hdf5File> hdf5{};
  };

  void read_index();
  [[nodiscard]] std::string read_part(std::string_view name) const;
  [[nodiscard]] std::shared_ptr<io::File> open_file(std::size_t i) const;
  [[nodiscard]] std::shared_ptr<io::Hdf5File> open(std::size_t i) const;
  [[nodiscard]] io::Hdf5Dataset open_piece(const io::Hdf5File& file, std::size_t i, const PieceRecord& piece) const;

  std::string path_;
  std::shared_ptr<io::Folder> folder_{};
  Index index_{};
  mutable std::vector<Opened> open_{};  ///< by file
};

/// Whether the name no longer exists.
[[nodiscard]] bool is_gone(const std::string& path) noexcept;
/// "checkpoint 'PATH' is gone: ...".
[[nodiscard]] core::Error gone_error(const std::string& path);

/// Collective: opens `path` (on rank 0); each rank verifies a part. Throws core::Error, the same on all ranks, if it is
/// not whole, or (usage) has the name of another step.
[[nodiscard]] Checkpoint open_checkpoint(const runtime::Communicator& world, const std::string& path);

/// Returns the paths of checkpoints, on rank 0 only.
using ListPaths = std::function<std::vector<std::string>()>;

/// Collective: returns the first whole checkpoint of `list` that has its own name; nothing if there is none. Warns
/// about those before it. If a run has removed one meanwhile, calls `list` again.
[[nodiscard]] std::optional<Checkpoint> open_first_whole(const runtime::Communicator& world, const ListPaths& list);

/// Collective: opens the checkpoint `path` (on rank 0), or the newest whole one if `path` is a run. Throws core::Error,
/// the same on all ranks: (usage, naming `where`) if there is none, (failed) if none is whole.
[[nodiscard]] Checkpoint open_newest(const runtime::Communicator& world, const std::string& path,
                                     std::string_view where);

}  // namespace lockstep::checkpoint
