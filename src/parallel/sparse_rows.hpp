// The rows of embeddings that have a gradient in this step; all others are zero on every rank and need no sum.
// Invariant: a rank marks its own rows before it reports its gradients as ready; marks last until the step is over.
// Used by the synchronizer.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/transport.hpp"
#include "parallel/slots.hpp"

namespace lockstep::parallel {

class SparseRows {
 public:
  /// Collective over the ranks of one node. Uses those of `slots` that have rows.
  SparseRows(comm::Transport& node, std::span<const Slot> slots);

  /// Marks rows of this rank, in any order, with repetitions.
  void touch(std::size_t slot, std::span<const std::uint64_t> rows);
  /// Removes all marks of this rank, and zeroes their rows in its gradients.
  void clear(std::span<float> gradients) noexcept;
  /// Zeroes the rows in `slice` of an arena: those touched by any rank of the node, or all.
  void zero(const core::Slice& slice, bool is_all, std::span<float> arena);

  [[nodiscard]] bool has_rows(const core::Slice& slice) const noexcept;

  /// Finds the parts of `slice` in which any rank of the node may have a gradient: touched rows, and slots without
  /// rows. Ascending, with neighbours joined. Reuses `parts`, so that a steady step allocates nothing.
  void find_touched(const core::Slice& slice, std::vector<core::Slice>& parts) const;
  /// The greatest number of parts that find_touched() can find.
  [[nodiscard]] std::size_t most_parts(const core::Slice& slice) const noexcept;

 private:
  static constexpr std::size_t word_bits = 64;

  struct Table {
    std::size_t n_rows = 0;
    std::size_t first_word = 0;
  };

  [[nodiscard]] static std::size_t words_of(std::size_t n_rows) noexcept {
    return (n_rows + word_bits - 1) / word_bits;
  }
  [[nodiscard]] core::Slice rows_in(std::size_t slot, const core::Slice& slice) const noexcept;
  [[nodiscard]] core::Slice row_of(std::size_t slot, std::size_t row) const noexcept;
  [[nodiscard]] std::span<std::uint64_t> marks(int rank) const noexcept;
  [[nodiscard]] std::uint64_t marks_of_all(std::size_t word) const noexcept;
  void add_rows(std::size_t slot, const core::Slice& slice, std::vector<core::Slice>& parts) const;

  std::vector<Slot> slots_;
  std::vector<Table> tables_;  ///< of each slot; without rows for slots that have none
  std::size_t n_words_ = 0;
  int rank_;
  int n_ranks_;
  std::unique_ptr<comm::SharedSegment> segment_;
  std::vector<core::Slice> parts_{};
};

}  // namespace lockstep::parallel
