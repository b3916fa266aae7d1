// The state of a scaled loss between steps, which a resumed run needs besides parameters and states.
// Invariant: a plain value, the same on all ranks.
// Used by parallel/ and the trainer's checkpoints; cuda/step_state.hpp updates it in a step.
#pragma once

#include <cstdint>

namespace lockstep::optim {

struct LossScale {
  float value = 1;
  std::uint32_t n_good = 0;     ///< steps in a row since it last changed
  std::uint64_t n_updates = 0;  ///< all steps except skipped ones
};

}  // namespace lockstep::optim
