// Units: runs of the arena that belong together because one block of the network reads their tensors. They are for
// sharding strategies, which handle one unit at a time: gather, reduce, update. Each rank keeps one part of a unit.
// Invariant: a pure value of tensors and options. The parts of a unit are equal, and consist of whole blocks of
// Sharding. Vectors are in a region of their own, which every rank keeps whole.
// Used by the trainer, whose executors place tensors here.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/slice.hpp"

namespace lockstep::parallel {

/// A tensor that has no place yet.
struct UnitTensor {
  std::string name{};
  std::string unit{};          ///< the block that reads it, such as "layer1.0"; empty: outside of all blocks
  std::size_t n_elements = 0;  ///< with the padding of its layout
  bool is_vector = false;      ///< of one dimension: a bias, or a weight of a normalization
  bool is_shared = false;      ///< by layers at both ends of the network, such as an embedding and a head
};

struct UnitOptions {
  std::size_t least_elements = 100'000;  ///< neighbours are joined until a unit has this many
  std::size_t n_parts = 1;
};

struct Unit {
  std::string name{};                  ///< of its block or matrix; "h.5 to h.3" if some were joined
  core::Slice slice{};                 ///< of the arena
  std::vector<std::size_t> tensors{};  ///< ascending
  /// Whether it is gathered once per step and never freed, because it is read first in forward and last in backward:
  /// a shared matrix.
  bool is_resident = false;
};

struct UnitPlan {
  std::vector<core::Slice> places{};  ///< by tensor
  std::vector<Unit> units{};          ///< in the order of their tensors
  core::Slice vectors{};              ///< the region of all vectors, after the units

  [[nodiscard]] std::size_t n_elements() const noexcept { return vectors.end(); }
};

/// Places `tensors`, which are in the order in which backward completes them. The matrices of a block become one unit,
/// and so does each matrix outside of blocks; small units are joined, except resident ones. Matrices begin at multiples
/// of block_elements, and a unit has a multiple of n_parts * block_elements. Throws core::Error (system) if the
/// matrices of a block are not neighbours.
[[nodiscard]] UnitPlan plan_units(std::span<const UnitTensor> tensors, const UnitOptions& options);

}  // namespace lockstep::parallel
