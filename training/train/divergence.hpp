// What ends or reverses training because numbers went wrong: a step that is not finite, or parameters that something
// other than their owners has changed.
// Invariant: all ranks find the same, by the control word.
// Used by the trainer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "checkpoint/reader.hpp"
#include "core/error.hpp"
#include "parallel/control_word.hpp"
#include "runtime/communicator.hpp"
#include "training/run/record.hpp"
#include "training/train/bad_step.hpp"
#include "training/train/learner.hpp"
#include "training/train/state.hpp"

namespace lockstep::training {

class Divergence {
 public:
  /// Both must outlive it.
  Divergence(const runtime::Communicator& world, Learner& learner) : world_{world}, learner_{learner} {}

  /// Whether parameters were changed, and the run has not gone back since.
  [[nodiscard]] bool has_change() const noexcept { return change_.has_value(); }
  /// Collective: notes such a change. Returns whether there is one.
  bool note_change(const parallel::StepAgreement& agreement);
  /// The noted change, which is then forgotten.
  [[nodiscard]] core::Error take_change() { return *std::exchange(change_, std::nullopt); }
  /// Collective: returns the newest checkpoint from before `change`, of `folder` (on rank 0) or the one that was
  /// resumed, and sets newer ones aside; nothing if there is none, or if the same happened before without progress
  /// since, which is not chance.
  [[nodiscard]] std::optional<checkpoint::Checkpoint> find_sound(const core::Error& change, const std::string& folder,
                                                                 std::uint64_t n_steps,
                                                                 const std::optional<ResumeRecord>& resumed);

  /// For the step after `state.n_agreed`: the rank that found it reports it. Returns the message of the run.
  [[nodiscard]] std::string report_not_finite(const parallel::StepAgreement& agreement, const RunState& state);
  /// Whether it was reported, so that parameters and states are still those from before that step.
  [[nodiscard]] bool is_step_bad() const noexcept { return is_step_bad_; }
  /// Collective: returns what all ranks saw of it.
  [[nodiscard]] BadStep gather_bad_step(const RunState& state) const;

 private:
  const runtime::Communicator& world_;
  Learner& learner_;
  std::optional<core::Error> change_{};
  std::optional<std::uint64_t> changed_at_{};  ///< step after which one was last found
  bool is_step_bad_ = false;
};

}  // namespace lockstep::training
