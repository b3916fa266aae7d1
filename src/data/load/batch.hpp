// The work of a rank for one step, from the loader's threads to the kernels.
// Invariant: x, y and ids belong to the same n samples, in the same order; the maker of a batch owns the memory.
// Used by data/load/loader, nn/ and the trainer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "data/augment/image_view.hpp"

namespace lockstep::data {

struct Batch {
  std::uint64_t number = 0;              ///< within the epoch
  std::uint64_t n_global = 0;            ///< samples of all ranks: the divisor of a mean
  std::uint64_t n = 0;                   ///< of this rank; may be 0
  std::span<const std::byte> x{};        ///< n samples, one after another
  std::span<const std::byte> y{};        ///< labels or targets of n samples
  std::span<const std::uint64_t> ids{};  ///< of the samples, if they have any
  std::optional<Images> images{};        ///< x is their pixels; how to convert them

  /// Samples [first, first + n_part) of the batch.
  [[nodiscard]] Batch part(std::uint64_t first, std::uint64_t n_part) const noexcept {
    const auto cut = [&](auto values) {
      const std::size_t each = n > 0 ? values.size() / n : 0;
      return values.subspan(first * each, n_part * each);
    };
    Batch part{.number = number, .n_global = n_global, .n = n_part, .x = cut(x), .y = cut(y), .ids = cut(ids)};
    if (images) (part.images = images)->views = cut(images->views);
    return part;
  }
};

}  // namespace lockstep::data
