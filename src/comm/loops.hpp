// The loops over elements: combine, fold, divide, copy; one set per instruction set, chosen at run time.
// Invariant: all sets give the same bits; sums and products of 16-bit floats are computed in float32 and rounded once
// per call; min and max of a NaN and anything are NaN.
// Used by the schedules' executor, shm and hierarchical, parallel/, and the memory probe of reduce_all/.
#pragma once

#include <cstddef>
#include <span>

#include "comm/collective.hpp"
#include "core/dtype.hpp"
#include "core/loop_sets.hpp"

namespace lockstep::comm {

using Isa = core::LoopSet;

/// dst[i] = a[i] op b[i] for n elements; dst may be a or b, no other overlap. avg combines as sum.
using Combine = void (*)(std::byte* dst, const std::byte* a, const std::byte* b, std::size_t n);

/// Where a fold writes its result. `second` may be null. `stream` lets the stores to `first` bypass the caches.
struct FoldTarget {
  std::byte* first = nullptr;
  std::byte* second = nullptr;
  bool stream = false;
};

/// target[i] = (sources[0][i] op sources[1][i] op ...) / divisor, in that order, rounded once for 16-bit floats. The
/// divisor is 1 except for avg. At least one source; `first` may equal a source.
using Fold = void (*)(FoldTarget target, std::span<const std::byte* const> sources, std::size_t n, int divisor);

/// dst[i] = src[i] / divisor; integers truncate toward zero; dst may be src.
using Divide = void (*)(std::byte* dst, const std::byte* src, std::size_t n, int divisor);

/// The loops of one instruction set.
struct Loops {
  Isa isa = Isa::plain;
  Combine combine[core::all_dtypes.size()][all_reduce_ops.size()] = {};
  Fold fold[core::all_dtypes.size()][all_reduce_ops.size()] = {};
  Divide divide[core::all_dtypes.size()] = {};
  /// Copies with stores that bypass the caches; for results larger than the last-level cache. No overlap.
  void (*copy_streaming)(std::byte* dst, const std::byte* src, std::size_t bytes) = nullptr;

  template <core::LoopSet set>
  [[nodiscard]] static const Loops& version() noexcept;

  [[nodiscard]] Combine find_combine(core::DType dtype, ReduceOp op) const noexcept {
    return combine[static_cast<std::size_t>(dtype)][static_cast<std::size_t>(op)];
  }
  [[nodiscard]] Fold find_fold(core::DType dtype, ReduceOp op) const noexcept {
    return fold[static_cast<std::size_t>(dtype)][static_cast<std::size_t>(op)];
  }
  [[nodiscard]] Divide find_divide(core::DType dtype) const noexcept { return divide[static_cast<std::size_t>(dtype)]; }
};

/// The set in use: the fastest available, unless force_loops() chose another.
[[nodiscard]] const Loops& loops() noexcept;

/// For tests and comparisons: plans made from now on use `isa`. Throws core::Error (usage) if it is not available.
void force_loops(Isa isa);

}  // namespace lockstep::comm
