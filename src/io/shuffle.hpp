// HDF5's byte shuffle (filter 2): first bytes of all elements, then second bytes, ..., then bytes of an incomplete end.
// Invariant: unshuffle undoes shuffle; both equal H5Z_FILTER_SHUFFLE for every element size and length.
// Used by io/codec.
#pragma once

#include <cstddef>
#include <span>

namespace lockstep::io {

/// `to` and `from` have the same size and do not overlap.
void shuffle(std::size_t element_size, std::span<const std::byte> from, std::span<std::byte> to) noexcept;
void unshuffle(std::size_t element_size, std::span<const std::byte> from, std::span<std::byte> to) noexcept;

}  // namespace lockstep::io
