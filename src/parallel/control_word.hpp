// What all ranks must agree on after each step, exchanged by one small all-reduce.
// Invariant: all ranks get the same agreement and take the same branch; it is about the step before, so nobody waits.
// Used by the trainer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "comm/plan.hpp"
#include "comm/transport.hpp"

namespace lockstep::parallel {

/// What one rank has to say about a step.
struct StepReport {
  double loss = 0;  ///< sum over its samples
  std::uint64_t n = 0;
  std::uint64_t n_top1 = 0;
  std::uint64_t n_top5 = 0;
  bool stop = false;
  bool save = false;
  /// The first slot whose gradient holds a NaN or infinity; the number of slots if only the loss is one.
  std::optional<std::uint32_t> not_finite{};
  std::uint64_t ledger = 0;                ///< hash of the samples seen; hashes of ranks add up
  std::optional<std::uint32_t> replica{};  ///< Synchronizer::replica_hash()
};

/// What was found first: the lowest rank that found something, and what it found.
struct NotFinite {
  int rank = 0;
  std::uint32_t slot = 0;
};

/// What all ranks know then: sums, and what any of them said.
struct StepAgreement {
  double loss = 0;
  std::uint64_t n = 0;
  std::uint64_t n_top1 = 0;
  std::uint64_t n_top5 = 0;
  bool stop = false;
  bool save = false;
  std::optional<NotFinite> not_finite{};
  std::uint64_t ledger = 0;
  bool replicas_agree = true;  ///< else Synchronizer::fail_for_replicas() tells which and where
};

class ControlWord {
 public:
  /// Collective. `is_deterministic`: the loss is summed by the tree over ranks that gradients are summed by.
  ControlWord(comm::Transport& world, bool is_deterministic);

  /// Collective: what was agreed on the report before, if there was one; and sends off this one.
  std::optional<StepAgreement> exchange(const StepReport& report);

  /// Collective: what is agreed on the last report, if it is not known yet.
  std::optional<StepAgreement> finish();

 private:
  static constexpr std::size_t n_words = 14;
  using Words = std::array<double, n_words>;

  static Words encode(const StepReport& report) noexcept;
  static StepAgreement decode(const Words& sums) noexcept;
  [[nodiscard]] NotFinite find_first();

  int rank_;
  Words mine_{};
  Words sums_{};
  std::uint64_t site_ = 0;   ///< rank and slot of what is not finite here, in that order of significance
  std::uint64_t first_ = 0;  ///< the least of all
  std::unique_ptr<comm::Plan> sum_;
  std::unique_ptr<comm::Plan> min_;
  bool is_under_way_ = false;
};

}  // namespace lockstep::parallel
