// Writes checkpoints: the boxes of all ranks as files of a folder that appears whole or not at all.
// Invariant: a checkpoint with its final name is on the disk, and digests cover all of it; an older checkpoint is never
// touched. share/doc/checkpoints.md has the format.
// Used by the trainer.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/box.hpp"
#include "checkpoint/rank_file.hpp"
#include "runtime/communicator.hpp"
#include "runtime/fault.hpp"

namespace lockstep::checkpoint {

/// Collective: writes the checkpoint `path` (on rank 0) from the boxes of all ranks, and replaces one of the same name.
/// `content`: the text of a JSON object (on rank 0), for Checkpoint::content(). One box at a time is in memory. `file`:
/// what this rank's files have in common, kept between checkpoints. Throws core::Error, the same on all ranks; then
/// nothing is left of it. `drill`: as in RankFile::write().
void write_checkpoint(const runtime::Communicator& world, const std::string& path, const std::string& content,
                      const std::vector<Box>& mine, const FillBox& fill, std::optional<RankFile>& file,
                      runtime::Drill* drill = nullptr);

/// A checkpoint that is written while the ranks continue, in two stages: each rank writes its file, then rank 0 makes
/// it a checkpoint. A thread that calls neither MPI nor HDF5 does each stage.
class BackgroundSave {
 public:
  /// Collective: arguments and errors as in write_checkpoint(). That thread calls `fill`, which must give the same
  /// values at any time; `file` must outlive this object.
  BackgroundSave(const runtime::Communicator& world, const std::string& path, std::string content,
                 const std::vector<Box>& mine, FillBox fill, std::optional<RankFile>& file,
                 runtime::Drill* drill = nullptr);
  /// Waits for the current stage. Nothing is left of an incomplete checkpoint.
  ~BackgroundSave();
  BackgroundSave(const BackgroundSave&) = delete;
  BackgroundSave& operator=(const BackgroundSave&) = delete;

  /// The number of stages that this rank has finished.
  [[nodiscard]] std::uint64_t n_done() const noexcept;
  /// Whether advance() would wait for no rank, given the sum of n_done() over all ranks.
  [[nodiscard]] bool may_advance(std::uint64_t n_done_of_all) const noexcept;
  /// Collective: waits for the current stage and begins the next; returns whether the checkpoint is complete. Throws
  /// core::Error, the same on all ranks; then it is lost.
  bool advance();

 private:
  static constexpr std::uint64_t n_stages = 2;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::checkpoint
