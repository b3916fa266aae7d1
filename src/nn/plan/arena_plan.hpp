// Places in one block of memory for buffers that live only for a while.
// Invariant: buffers that live at the same time never overlap; places depend on sizes and times alone.
// Used by the programs of all devices.
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
[[nodiscard]] ArenaPlan plan_arena(std::span<const Lifetime> buffers, std::size_t alignment);

/// The buffers of a program while it is planned. A buffer lives from its first use to its last.
class Buffers {
 public:
  /// Returns the number of the new buffer.
  [[nodiscard]] std::size_t add(std::size_t n_bytes);
  void use(std::size_t buffer, int time);
  /// Says that the buffer is used at most at two times, and that its content is not needed between them.
  void forget_between(std::size_t buffer) { lifetimes_[buffer].is_forgotten = true; }
  [[nodiscard]] int last_use(std::size_t buffer) const { return lifetimes_[buffer].last; }

  /// Places all buffers, after all uses.
  void place(std::size_t alignment) { plan_ = plan_arena(lifetimes_, alignment); }
  [[nodiscard]] std::size_t offset(std::size_t buffer) const { return plan_.offsets[buffer]; }
  [[nodiscard]] std::size_t n_bytes() const noexcept { return plan_.n_bytes; }

 private:
  std::vector<Lifetime> lifetimes_{};
  ArenaPlan plan_{};
};

}  // namespace lockstep::nn
