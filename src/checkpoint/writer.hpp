// Writes checkpoints: the boxes of all ranks as files of a folder that appears whole or not at all.
// Invariant: what has its final name is on the disk, verified by digests of all that is in it; an older checkpoint is
// never touched. share/doc/checkpoints.md has the format.
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
/// what this rank's files have in common, kept from one to the next. Throws core::Error, the same on all ranks; then
/// nothing is left of it. `drill`: as RankFile::write() has it.
void write_checkpoint(const runtime::Communicator& world, const std::string& path, const std::string& content,
                      const std::vector<Box>& mine, const FillBox& fill, std::optional<RankFile>& file,
                      runtime::Drill* drill = nullptr);

/// A checkpoint that is written while the ranks do something else, in two stages: each rank writes its file, then rank
/// 0 writes what makes it a checkpoint. A thread that calls neither MPI nor HDF5 does each.
class BackgroundSave {
 public:
  /// Collective: arguments and errors as write_checkpoint(). That thread calls `fill`, which has to give the same
  /// values at any time; `file` must outlive this object.
  BackgroundSave(const runtime::Communicator& world, const std::string& path, std::string content,
                 const std::vector<Box>& mine, FillBox fill, std::optional<RankFile>& file,
                 runtime::Drill* drill = nullptr);
  /// Waits for the stage under way. Nothing is left of an incomplete checkpoint.
  ~BackgroundSave();
  BackgroundSave(const BackgroundSave&) = delete;
  BackgroundSave& operator=(const BackgroundSave&) = delete;

  /// Stages that this rank has finished.
  [[nodiscard]] std::uint64_t n_done() const noexcept;
  /// Whether advance() would wait for nobody, by the sum of n_done() of all ranks.
  [[nodiscard]] bool may_advance(std::uint64_t n_done_of_all) const noexcept;
  /// Collective: waits for the stage under way and begins the next; whether the checkpoint is complete. Throws
  /// core::Error, the same on all ranks; then it is lost.
  bool advance();

 private:
  static constexpr std::uint64_t n_stages = 2;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::checkpoint
