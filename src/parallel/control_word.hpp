// The agreement of all ranks after each step, exchanged by one small all-reduce.
// Invariant: all ranks get the same agreement and take the same branch; it concerns the previous report, so nobody
// waits.
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

/// The report of one rank when it has enqueued a step: sums and finiteness of what is done by then, the step before;
/// everything else is current.
struct StepReport {
  double loss = 0;  ///< sum over its samples
  std::uint64_t n = 0;
  std::uint64_t n_top1 = 0;
  std::uint64_t n_top5 = 0;
  bool stop = false;
  bool save = false;
  bool not_finite = false;                 ///< the loss, or the gradient
  bool changed = false;                    ///< Synchronizer::has_changed()
  std::uint64_t n_saved = 0;               ///< stages of a save under way that it is through with
  std::uint64_t ledger = 0;                ///< hash of the samples seen; hashes of ranks add up
  std::optional<std::uint32_t> replica{};  ///< Synchronizer::replica_hash()
};

/// What all ranks then know: sums, and whether any rank reported something.
struct StepAgreement {
  double loss = 0;
  std::uint64_t n = 0;
  std::uint64_t n_top1 = 0;
  std::uint64_t n_top5 = 0;
  bool stop = false;
  bool save = false;
  std::optional<int> not_finite{};  ///< the lowest rank of which that is so
  bool changed = false;             ///< Synchronizer::fail_for_change() tells which and where, on the ranks it is of
  std::uint64_t n_saved = 0;
  std::uint64_t ledger = 0;
  bool replicas_agree = true;  ///< else Synchronizer::fail_for_replicas() tells which and where
};

class ControlWord {
 public:
  /// Collective. `is_deterministic`: the loss is summed by the tree over ranks that gradients are summed by.
  ControlWord(comm::Transport& world, bool is_deterministic);

  /// Collective: the agreement on the previous report, if there was one; sends this one.
  std::optional<StepAgreement> exchange(const StepReport& report);

  /// Collective: the agreement on the last report, if it is not known yet.
  std::optional<StepAgreement> finish();

 private:
  static constexpr std::size_t n_words = 16;
  using Words = std::array<double, n_words>;

  static Words encode(const StepReport& report) noexcept;
  static StepAgreement decode(const Words& sums) noexcept;
  [[nodiscard]] int find_first();

  int rank_;
  Words mine_{};
  Words sums_{};
  std::uint64_t candidate_ = 0;  ///< this rank, if its loss is not finite; else more than any
  std::uint64_t first_ = 0;      ///< the least of all
  std::unique_ptr<comm::Plan> sum_;
  std::unique_ptr<comm::Plan> min_;
  bool is_under_way_ = false;
};

}  // namespace lockstep::parallel
