// Resuming from a checkpoint: which one, and whether it belongs to this run.
// Invariant: a run resumes with its original recipe and set, except for keys that do not change what is learned.
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
#include "training/train/batches.hpp"
#include "training/train/state.hpp"

namespace lockstep::training {

/// Collective: returns the checkpoint that --resume requests, verified; nothing without --resume, or with `auto` if
/// there is none. Throws core::Error, the same on all ranks: (usage) if there is none at the named place, (failed) if
/// it is not whole.
[[nodiscard]] std::optional<checkpoint::Checkpoint> find_checkpoint(const runtime::Communicator& world,
                                                                    const RunOptions& options);

/// The facts that give a position in an epoch its meaning.
struct Epochs {
  std::string set_digest{};     ///< of the set's manifest; empty if samples are synthetic
  std::uint64_t n_batches = 0;  ///< per epoch
  std::uint64_t n_ranks = 0;    ///< the order torch depends on it
};

/// The digest of the set's manifest; empty if samples are synthetic.
[[nodiscard]] std::string digest_of_set(const Recipe& recipe);

/// What a checkpoint stores besides tensors: the text of a JSON object. `bad`: the next step, if it is bad; else null.
[[nodiscard]] std::string checkpoint_content(const Recipe& recipe, const Epochs& epochs, const RunState& state,
                                             const BadStep* bad);

/// Returns the position of the run. Throws core::Error (usage) if its epochs had other batches, or it was kept for a
/// bad step; and, unless `is_anyway`, if it had another recipe or set.
[[nodiscard]] RunState resume_state(const checkpoint::Checkpoint& from, const Recipe& recipe, const Epochs& epochs,
                                    bool is_anyway);

/// Collective: throws core::Error, the same on all ranks, unless `from` counts the samples of its epoch as this run
/// does. The digest of an index does not tell who has written it, and at the end of the epoch a wrong ledger would look
/// like lost samples.
void require_ledger(const runtime::Communicator& world, const checkpoint::Checkpoint& from, const RunState& state,
                    Batches& training);

/// Returns what a deterministic run has changed since the checkpoint, if that changes bits: keys that resume_state()
/// allows to change, those of --resume-anyway, and the number of ranks if bits depend on it.
[[nodiscard]] std::vector<Change> changes_of_bits(const checkpoint::Checkpoint& from, const Recipe& recipe,
                                                  const Epochs& epochs);

}  // namespace lockstep::training
