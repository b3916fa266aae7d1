// The agreement of all ranks after each step, exchanged by one small all-reduce.
// Invariant: all ranks get the same agreement and take the same branch; it concerns the previous report, so no rank
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

/// The report of one rank after it has enqueued a step. Sums and `not_finite` concern the previous step, which is done
/// by then; everything else is current.
struct StepReport {
  double loss = 0;  ///< sum over the rank's samples
  std::uint64_t n = 0;
  std::uint64_t n_top1 = 0;
  std::uint64_t n_top5 = 0;
  bool stop = false;
  bool save = false;
  bool not_finite = false;                 ///< the loss, or the gradient
  bool found_parameter = false;            ///< if so: this rank owns a parameter that is not finite, which is the cause
  bool changed = false;                    ///< ReplicaGuard::has_changed()
  std::uint64_t n_saved = 0;               ///< completed stages of the current save
  std::uint64_t ledger = 0;                ///< hash of the samples seen; hashes of ranks add up
  std::optional<std::uint32_t> replica{};  ///< ReplicaGuard::replica_hash()
};

/// What all ranks know after the exchange: sums, and whether any rank reported something.
struct StepAgreement {
  double loss = 0;
  std::uint64_t n = 0;
  std::uint64_t n_top1 = 0;
  std::uint64_t n_top5 = 0;
  bool stop = false;
  bool save = false;
  std::optional<int> not_finite{};  ///< the lowest rank that reported it, of those that found a parameter if any did
  bool changed = false;             ///< the ranks concerned call ReplicaGuard::fail_for_change(), which names the place
  std::uint64_t n_saved = 0;
  std::uint64_t ledger = 0;
  bool replicas_agree = true;  ///< if false, ReplicaGuard::fail_for_replicas() names the place
};

class ControlWord {
 public:
  /// Collective. `is_deterministic`: sums the loss by the same tree over ranks as gradients.
  ControlWord(comm::Transport& world, bool is_deterministic);

  /// Collective: sends this report, and returns the agreement on the previous one, if there was one.
  std::optional<StepAgreement> exchange(const StepReport& report);

  /// Collective: returns the agreement on the last report, if it is not known yet.
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
  /// This rank if it found a parameter; more by 2^32 if not; greater than that if nothing is wrong.
  std::uint64_t candidate_ = 0;
  std::uint64_t first_ = 0;  ///< the minimum over all ranks
  std::unique_ptr<comm::Plan> sum_;
  std::unique_ptr<comm::Plan> min_;
  bool is_under_way_ = false;
};

}  // namespace lockstep::parallel
