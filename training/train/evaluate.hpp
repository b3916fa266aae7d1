// One exact pass over the evaluation split.
// Invariant: every sample counts once, on any number of ranks; counts of correct answers are exact. Evaluation does not
// change what is learned.
// Used by the trainer.
#pragma once

#include <functional>
#include <optional>

#include "nn/executor.hpp"
#include "runtime/communicator.hpp"
#include "training/train/batches.hpp"
#include "training/train/learner.hpp"

namespace lockstep::training {

/// Collective: sums over the whole split, the same on all ranks; nothing if `is_stop_asked`, which is called
/// periodically, returned true on any rank. Calls `on_batch` after each batch with the share of batches done, from 0 to
/// 1.
[[nodiscard]] std::optional<nn::LossSums> evaluate_split(const runtime::Communicator& world, Batches& batches,
                                                         Learner& learner, const std::function<bool()>& is_stop_asked,
                                                         const std::function<void(double share)>& on_batch);

}  // namespace lockstep::training
