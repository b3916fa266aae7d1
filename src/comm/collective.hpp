// The vocabulary of the collectives: which one, on which data, and which rank owns which part of the vector.
// Invariant: sizes are elements; the parts are a pure function of the call and the number of ranks.
// Used by every file of comm/ and by its callers.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "comm/power_of_two.hpp"
#include "core/dtype.hpp"
#include "core/slice.hpp"
#include "core/units.hpp"

namespace lockstep::comm {

/// Enumerators equal the words of the command line.
enum class Collective : std::uint8_t { all_reduce, reduce_scatter, all_gather };
inline constexpr std::array all_collectives{Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather};

/// avg is the sum divided once, at the end; for integers the quotient is truncated toward zero. Integer sums and
/// products wrap modulo 2^bits. Each sum and product of 16-bit floats is computed in float32 and rounded once. min and
/// max are NaN if any rank has a NaN (IEEE 754-2019 minimum and maximum, except that either of +0 and -0 may result).
enum class ReduceOp : std::uint8_t { sum, prod, min, max, avg };
inline constexpr std::array all_reduce_ops{ReduceOp::sum, ReduceOp::prod, ReduceOp::min, ReduceOp::max, ReduceOp::avg};

[[nodiscard]] constexpr std::string_view name(Collective collective) noexcept {
  switch (collective) {
    case Collective::all_reduce: return "all_reduce";
    case Collective::reduce_scatter: return "reduce_scatter";
    case Collective::all_gather: break;
  }
  return "all_gather";
}

[[nodiscard]] constexpr std::string_view name(ReduceOp op) noexcept {
  switch (op) {
    case ReduceOp::sum: return "sum";
    case ReduceOp::prod: return "prod";
    case ReduceOp::min: return "min";
    case ReduceOp::max: return "max";
    case ReduceOp::avg: break;
  }
  return "avg";
}

/// A collective call, the same on all ranks. `n_elements` is the whole vector: all_reduce's input and output,
/// reduce_scatter's input, all_gather's output. The output of reduce_scatter and the input of all_gather are this
/// rank's part() of it. Nothing else computes parts.
struct Call {
  Collective collective = Collective::all_reduce;
  core::DType dtype = core::DType::float32;
  ReduceOp op = ReduceOp::sum;
  std::size_t n_elements = 0;
  std::size_t grain = 1;  ///< parts begin at multiples of this many elements
  /// Whether every element is summed by the same binary tree over ranks, for any collective and any length: see
  /// choose(). If so, parts lie in the order of PowerOfTwoFold::mirrored_part(), else in rank order.
  bool is_order_fixed = false;
  /// If not empty, where parts begin, in their order, and where the last one ends: for parts of any length. Then
  /// `grain` has no effect. They must outlive the plans of this call. An all_reduce ignores them.
  std::span<const std::size_t> cuts{};

  [[nodiscard]] core::Bytes bytes() const noexcept { return {n_elements * element_size()}; }
  [[nodiscard]] std::size_t element_size() const noexcept { return core::size_of(dtype); }
  /// The input of `rank`, as a slice of the whole vector.
  [[nodiscard]] core::Slice input(int rank, int n_ranks) const noexcept {
    return collective == Collective::all_gather ? part(rank, n_ranks) : core::Slice{0, n_elements};
  }
  /// The output of `rank`, as a slice of the whole vector.
  [[nodiscard]] core::Slice output(int rank, int n_ranks) const noexcept {
    return collective == Collective::reduce_scatter ? part(rank, n_ranks) : core::Slice{0, n_elements};
  }
  /// The index of the part that belongs to `rank`, in the order of the vector.
  [[nodiscard]] std::size_t index_of_part(int rank, int n_ranks) const noexcept {
    return static_cast<std::size_t>(is_order_fixed ? PowerOfTwoFold{n_ranks, rank}.mirrored_part() : rank);
  }
  /// The part of the whole vector that belongs to `rank`. Without cuts, lengths differ by at most one grain, and rank 0
  /// has the longest part.
  [[nodiscard]] core::Slice part(int rank, int n_ranks) const noexcept {
    const std::size_t index = index_of_part(rank, n_ranks);
    if (has_cuts()) return {cuts[index], cuts[index + 1] - cuts[index]};
    return core::partition(n_elements, static_cast<std::size_t>(n_ranks), index, grain);
  }
  /// The length of the longest part.
  [[nodiscard]] std::size_t longest_part(int n_ranks) const noexcept {
    std::size_t longest = 0;
    for (int rank = 0; rank < (has_cuts() ? n_ranks : 1); ++rank)
      longest = std::max(longest, part(rank, n_ranks).count);
    return longest;
  }
  /// Whether all parts have the same length and are in rank order: libraries have faster collectives for these.
  [[nodiscard]] bool has_equal_parts(int n_ranks) const noexcept {
    const bool is_rank_order = !is_order_fixed || n_ranks <= 3;  // up to 3 ranks have the same order in both
    return is_rank_order && !has_cuts() && part(0, n_ranks).count * static_cast<std::size_t>(n_ranks) == n_elements;
  }

 private:
  [[nodiscard]] bool has_cuts() const noexcept { return !cuts.empty() && collective != Collective::all_reduce; }
};

}  // namespace lockstep::comm
