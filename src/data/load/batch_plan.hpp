// Which positions of the order make up a batch, and which of them are this rank's.
// Invariant: all ranks have the same number of batches and the same n_global; together they take every position
// once (for torch, after padding).
// Used by data/load/loader, and by whoever has to know what it will deal.
#pragma once

#include <cstdint>

namespace lockstep::data {

/// How the positions of a batch are dealt to ranks.
enum class Deal {
  slices,   ///< each rank a contiguous slice of the batch, sizes differing by one unit at most
  strided,  ///< position p to rank p modulo the ranks, the order padded with its head to a multiple of them
  ranges    ///< each rank a contiguous range of the whole set, cut into batches of its own (evaluation)
};

/// What a rank does for one batch: n positions first, first + stride, ..., each modulo the samples of the set.
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
    /// For `slices`: a batch is cut at multiples of so many samples only, so that those between two multiples stay
    /// together, however many ranks there are. Where batches are smaller than the full one, some ranks may get none.
    std::uint64_t unit = 1;
    /// So many ranks in a row get whole units together, and cut them evenly among themselves; divides n_ranks.
    std::uint64_t n_together = 1;
    std::uint64_t rank = 0;
    std::uint64_t n_ranks = 1;
  };

  explicit BatchPlan(const Options& options) noexcept;

  [[nodiscard]] std::uint64_t n_batches() const noexcept { return n_batches_; }
  /// No batch has a larger `n`. Not more than a full batch has where every `n_together` ranks get as many of its units.
  [[nodiscard]] std::uint64_t most() const noexcept;
  [[nodiscard]] Share share(std::uint64_t batch) const noexcept;

 private:
  [[nodiscard]] std::uint64_t rank_batch() const noexcept;  ///< of `ranges`
  [[nodiscard]] Share range_share(std::uint64_t batch) const noexcept;
  [[nodiscard]] Share slice_share(std::uint64_t first, std::uint64_t n) const noexcept;

  Options options_;
  std::uint64_t n_positions_;  ///< samples, and the padding of `strided`
  std::uint64_t n_batches_;
};

}  // namespace lockstep::data
