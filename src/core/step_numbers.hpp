// What changes from one training step to the next, besides samples and parameters.
// Invariant: plain numbers in one place, so that a device can read them through a pointer when it reaches the step, and
// a recording of a step stays valid.
// Used by nn/ and parallel/; filled by the trainer.
#pragma once

#include <cstdint>

namespace lockstep::core {

struct StepNumbers {
  double learning_rate = 0;
  float scale = 1;          ///< of the loss, so that small gradients are not lost; gradients are divided by it again
  float sample_weight = 1;  ///< of each sample in the gradient: 1 over the samples of all ranks
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;  ///< number of the step in the run
  /// How far running statistics move in a pass: the share of its samples in the rank's samples of the step; 0: not at
  /// all.
  double share_of_step = 1;
  bool begins_step = true;  ///< for running statistics: the first pass of the step that has samples
};

}  // namespace lockstep::core
