// The samples that an epoch has delivered, as one number.
// Invariant: equal for equal multisets of ids, in any order and from any ranks.
// Used by data/load/loader and the trainer.
#pragma once

#include <cstdint>

namespace lockstep::data {

/// A proof, independent of order, that every sample was seen once: the sum of a hash of each id, equal for equal
/// multisets. The ledgers of ranks add up to that of all.
class Ledger {
 public:
  void add(std::uint64_t id) noexcept;
  [[nodiscard]] std::uint64_t hash() const noexcept { return hash_; }
  /// The ledger of ids 0 ... n - 1, each once.
  [[nodiscard]] static Ledger complete(std::uint64_t n) noexcept;
  bool operator==(const Ledger&) const = default;

 private:
  std::uint64_t hash_ = 0;
};

}  // namespace lockstep::data
