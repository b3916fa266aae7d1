// The amount of training that a recipe requests on a given set.
// Invariant: the same on all ranks.
// Used by the trainer and by the reports of a run.
#pragma once

#include <cstdint>

namespace lockstep::training {

/// Where training ends: by its length or by a limit of steps, whichever comes first.
struct Goal {
  std::uint64_t n_epochs = 0;   ///< the last one may be incomplete
  std::uint64_t n_samples = 0;  ///< of all epochs together, in whole batches
  std::uint64_t n_steps = 0;
  bool is_within_epoch = false;  ///< the last one is incomplete
};

}  // namespace lockstep::training
