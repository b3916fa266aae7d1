// Parts of tensors, as ranks keep them and files store them.
// Invariant: the owner of a part knows its place in the logical tensor, so any ranks read what any others wrote.
// Used by checkpoint/ and the trainer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/slice.hpp"

namespace lockstep::checkpoint {

/// Rows of a float32 tensor, seen as {outer, n_rows, n_inner}. Values are in this order: {outer, rows, n_inner}. Boxes
/// of one tensor may see it differently: by rows of its first dimension, of its second, or by single elements.
struct Box {
  std::string tensor{};                ///< "parameter/conv1.weight"
  std::vector<std::uint64_t> shape{};  ///< of the whole tensor, as in PyTorch
  std::size_t n_outer = 1;
  std::size_t n_rows = 1;
  std::size_t n_inner = 1;
  core::Slice rows{};

  [[nodiscard]] std::size_t n_elements() const noexcept { return n_outer * rows.count * n_inner; }
  friend bool operator==(const Box&, const Box&) = default;
};

/// All of a tensor, by its first dimension.
[[nodiscard]] Box whole(std::string tensor, std::vector<std::uint64_t> shape);

/// Returns the number of elements that both have. Both belong to one tensor.
[[nodiscard]] std::size_t count_common(const Box& a, const Box& b);

/// Copies to `to` the elements that `from` also has; returns their number. Both belong to one tensor.
std::size_t copy_common(const Box& from, std::span<const float> source, const Box& to, std::span<float> target);

/// Fills, or takes, the values of box number `i`.
using FillBox = std::function<void(std::size_t i, std::span<float> values)>;

}  // namespace lockstep::checkpoint
