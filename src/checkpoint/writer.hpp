// Writes checkpoints: the boxes of all ranks as files of a folder that appears whole or not at all.
// Invariant: what has its final name is on the disk, verified by digests of all that is in it; an older checkpoint is
// never touched. share/doc/training.md has the format.
// Used by the trainer.
#pragma once

#include <span>
#include <string>

#include "checkpoint/box.hpp"
#include "runtime/communicator.hpp"

namespace lockstep::checkpoint {

/// Collective: the checkpoint `path` (on rank 0), of the boxes of all ranks that have some; one of the same name is
/// replaced. `content`: the text of a JSON object (on rank 0), for Checkpoint::content(). One box at a time is in
/// memory. Throws core::Error, the same on all ranks; then nothing is left of it.
void write_checkpoint(const runtime::Communicator& world, const std::string& path, const std::string& content,
                      std::span<const Box> mine, const FillBox& fill);

}  // namespace lockstep::checkpoint
