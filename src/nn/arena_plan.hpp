// Places in one block of memory for buffers that live only for a while.
// Invariant: buffers that live at the same time never overlap; places depend on sizes and times alone.
// Used by nn/host/storage and nn/cuda/program_memory.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace lockstep::nn {

/// A buffer needed from time `first` to time `last`, both included.
struct Lifetime {
  std::size_t n_bytes = 0;
  int first = 0;
  int last = -1;              ///< before `first`: it is never needed
  bool is_forgotten = false;  ///< needed at `first` and `last`, but its content is not kept between them
};

struct ArenaPlan {
  std::vector<std::size_t> offsets{};  ///< of each buffer, multiples of the alignment
  std::size_t n_bytes = 0;             ///< of all
};

/// Places the largest buffer first, each at the lowest address that is free while it lives.
[[nodiscard]] ArenaPlan plan_arena(std::span<const Lifetime> buffers, std::size_t alignment = 64);

}  // namespace lockstep::nn
