// Which samples of a source split go into a split of the set, in the source's order.
// Invariant: takes no memory for all samples, a bit and an eighth per sample of the source for a choice of them.
// Used by data/write/pack.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::data {

/// Samples of the source that follow one another.
struct Run {
  std::uint64_t first = 0;
  std::uint64_t n = 0;
};

class Selection {
 public:
  /// All of n samples.
  explicit Selection(std::uint64_t n) : n_source_{n}, n_{n} {}
  /// Those of n samples whose bit is set, bit i % 64 of word i / 64; bits from n on are 0.
  Selection(std::uint64_t n, std::vector<std::uint64_t> bits);

  /// Leaves out some samples; those that are not selected do not matter.
  void remove(const std::vector<std::uint64_t>& samples);

  [[nodiscard]] std::uint64_t n() const noexcept { return n_; }
  [[nodiscard]] bool has(std::uint64_t sample) const noexcept;
  /// How many selected samples come before this one.
  [[nodiscard]] std::uint64_t position_of(std::uint64_t sample) const noexcept;
  /// The samples from `position` < n() on that follow one another in the source too, at most `most` > 0.
  [[nodiscard]] Run run_at(std::uint64_t position, std::uint64_t most) const noexcept;

 private:
  void count();
  [[nodiscard]] std::uint64_t at(std::uint64_t position) const noexcept;

  std::uint64_t n_source_;
  std::uint64_t n_;
  std::vector<std::uint64_t> bits_{};    ///< empty: all
  std::vector<std::uint64_t> before_{};  ///< selected samples before each block of words
};

}  // namespace lockstep::data
