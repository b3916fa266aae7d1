// The positions of the order that make up a batch, and this rank's share of them.
// Invariant: all ranks have the same number of batches and the same n_global; together they take every position once
// (for torch, after padding).
// Used by data/load/loader, and by code that must predict its batches.
#pragma once

#include <cstdint>

namespace lockstep::data {

/// How the positions of a batch are divided among ranks.
enum class Deal {
  slices,   ///< each rank gets a contiguous slice of the batch; sizes differ by at most one unit
  strided,  ///< position p goes to rank p modulo the ranks; the order is padded with its head to a multiple of them
  ranges    ///< each rank gets a contiguous range of the whole set, cut into batches of its own (evaluation); in a
            ///< batch, ranks differ by at most one sample
};

/// A rank's share of a batch: n positions first, first + stride, ..., each modulo the samples of the set.
struct Share {
  std::uint64_t first = 0;
  std::uint64_t stride = 1;
  std::uint64_t n = 0;
  std::uint64_t n_global = 0;  ///< of all ranks together
};

class BatchPlan {
 public:
  struct Options {
    std::uint64_t n_samples = 0;
    std::uint64_t global_batch = 1;  ///< at least 1; for `ranges`, each rank takes its n_ranks-th part, at least 1
    Deal deal = Deal::slices;
    bool drop_last = false;  ///< not for `ranges`: an evaluation is exact
    /// For `slices`: a batch is cut only at multiples of this many samples, so that samples between two multiples stay
    /// together for any number of ranks. If batches are smaller than the full one, some ranks may get none.
    std::uint64_t unit = 1;
    /// This many consecutive ranks get whole units together, and divide them evenly; divides n_ranks.
    std::uint64_t n_together = 1;
    std::uint64_t rank = 0;
    std::uint64_t n_ranks = 1;
  };

  explicit BatchPlan(const Options& options) noexcept;

  [[nodiscard]] std::uint64_t n_batches() const noexcept { return n_batches_; }
  /// The greatest `n` of any batch: the share of a full batch if every `n_together` ranks get equally many of its
  /// units.
  [[nodiscard]] std::uint64_t most() const noexcept;
  [[nodiscard]] Share share(std::uint64_t batch) const noexcept;

 private:
  [[nodiscard]] std::uint64_t rank_batch() const noexcept;  ///< for `ranges`
  [[nodiscard]] Share range_share(std::uint64_t batch) const noexcept;
  [[nodiscard]] Share slice_share(std::uint64_t first, std::uint64_t n) const noexcept;

  Options options_;
  std::uint64_t n_positions_;  ///< samples, plus the padding of `strided`
  std::uint64_t n_batches_;
};

}  // namespace lockstep::data
