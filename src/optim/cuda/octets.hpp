// What all kernels of this folder share: how threads divide a piece, grids, and regions of memory.
// Invariant: an octet is what one thread reads and writes of an array at once, in packs of 16 bytes.
// Used by the files *.cu here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include "core/error.hpp"
#include "optim/cuda/arena.hpp"
#include "runtime/kernel/launch.hpp"

namespace lockstep::optim::cuda {

namespace kernel = runtime::kernel;

/// Elements that a thread processes at once.
inline constexpr int octet = 8;
static_assert(range_multiple % octet == 0);

/// Calls f(index of an octet in the arena) for a thread's octets of a piece.
template <class Team, class F>
LOCKSTEP_HOST_DEVICE void each_octet(const Team& team, int thread, const BlockPiece& piece, const F& f) {
  const auto first = static_cast<std::uint32_t>(piece.offset / octet);
  const std::uint32_t end = first + piece.n / octet;
  for (std::uint32_t i = first + static_cast<std::uint32_t>(thread); i < end;
       i += static_cast<std::uint32_t>(team.n_threads()))
    f(i);
}

/// One block per piece, but no more blocks than keep any GPU busy.
[[nodiscard]] inline kernel::Grid grid_of_pieces(std::size_t n_pieces) noexcept {
  return {.n_blocks = kernel::grid_of(n_pieces, 1).n_blocks};
}

template <class T>
[[nodiscard]] kernel::Region region_of(const DeviceSpan<T>& span) noexcept {
  return kernel::region(span.data(), span.size());
}

}  // namespace lockstep::optim::cuda
