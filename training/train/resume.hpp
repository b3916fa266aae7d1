// Resuming from a checkpoint: which one, and whether it belongs to this run.
// Invariant: a run resumes with the recipe and the set it was started with, except for keys that do not change what is
// learned.
// Used by the trainer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/reader.hpp"
#include "runtime/communicator.hpp"
#include "training/recipe/recipe.hpp"
#include "training/recipe/resume_promise.hpp"
#include "training/run/options.hpp"
#include "training/train/bad_step.hpp"
#include "training/train/state.hpp"

namespace lockstep::training {

/// Collective: the checkpoint that --resume asks for, verified; nothing without --resume, or with `auto` if there is
/// none. Throws core::Error, the same on all ranks: (usage) if there is none at the named place, (failed) if it is not
/// whole.
[[nodiscard]] std::optional<checkpoint::Checkpoint> find_checkpoint(const runtime::Communicator& world,
                                                                    const RunOptions& options);

/// What the place in an epoch is about.
struct Epochs {
  std::string set_digest{};     ///< of the set's manifest; empty if samples are made
  std::uint64_t n_batches = 0;  ///< of each
  std::uint64_t n_ranks = 0;    ///< on which the order torch depends
};

/// Digest of the set's manifest; empty if samples are made.
[[nodiscard]] std::string digest_of_set(const Recipe& recipe);

/// What a checkpoint keeps besides tensors: the text of a JSON object. `bad`: the step that would come next; null if it
/// is not bad.
[[nodiscard]] std::string checkpoint_content(const Recipe& recipe, const Epochs& epochs, const RunState& state,
                                             const BadStep* bad);

/// The position of the run. Throws core::Error (usage) if its epochs had other batches, or it is kept for a bad step;
/// and if it had another recipe or set, unless `is_anyway`.
[[nodiscard]] RunState resume_state(const checkpoint::Checkpoint& from, const Recipe& recipe, const Epochs& epochs,
                                    bool is_anyway);

/// What a deterministic run has changed since the checkpoint, if that changes bits: keys that resume_state() lets
/// change, those of --resume-anyway, and the number of ranks where bits depend on it.
[[nodiscard]] std::vector<Change> changes_of_bits(const checkpoint::Checkpoint& from, const Recipe& recipe,
                                                  const Epochs& epochs);

}  // namespace lockstep::training
