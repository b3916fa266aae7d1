// The threads of a block, as a kernel's body sees them: phases with a barrier after each, one number per thread that
// lasts between phases, sums over threads, and scratch memory of the block.
// Invariant: on the host threads run one after another, in an order that may change from phase to phase. So a body that
// lacks a barrier gives other results there; sums have the same order, and so the same bits, as on a GPU.
// Used by kernel bodies, through a template parameter Team; on a GPU it is cuda_team.cuh's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "core/error.hpp"
#include "runtime/kernel/portable.hpp"

namespace lockstep::runtime::kernel {

/// Threads of a block that a GPU runs in lockstep; sums are taken within them first.
inline constexpr int warp_size = 32;

/// How a kernel is launched. Threads are a multiple of warp_size, at most 1024.
struct Grid {
  unsigned n_blocks = 1;
  int n_threads = 256;
  std::size_t scratch_bytes = 0;  ///< of each block; rounded up to 16 for each array
};

/// The order in which the threads of a phase run on the host.
enum class ThreadOrder : std::uint8_t { ascending, descending, shuffled };

class HostTeam {
 public:
  /// One number per thread.
  template <class T>
  class PerThread {
   public:
    PerThread(int n, T initial) : values_(static_cast<std::size_t>(n), initial) {}
    T& operator[](int thread) { return values_.at(static_cast<std::size_t>(thread)); }
    const T& operator[](int thread) const { return values_.at(static_cast<std::size_t>(thread)); }

   private:
    std::vector<T> values_;
  };

  HostTeam(const Grid& grid, unsigned block, ThreadOrder order)
      : grid_{grid}, block_{block}, order_{order}, scratch_((grid.scratch_bytes + 15) / 16) {
    // NaN, because code must not rely on zeros.
    std::ranges::fill(std::as_writable_bytes(std::span{scratch_}), std::byte{0xff});
  }

  [[nodiscard]] int n_threads() const { return grid_.n_threads; }
  [[nodiscard]] unsigned block() const { return block_; }
  [[nodiscard]] unsigned n_blocks() const { return grid_.n_blocks; }

  /// Calls f(thread) for every thread; then all wait for one another.
  template <class F>
  void each(F&& f) {
    std::vector<int> threads(static_cast<std::size_t>(grid_.n_threads));
    std::iota(threads.begin(), threads.end(), 0);
    if (order_ == ThreadOrder::descending) std::ranges::reverse(threads);
    if (order_ == ThreadOrder::shuffled) shuffle(threads);
    for (const int thread : threads) f(thread);
  }

  template <class T>
  [[nodiscard]] PerThread<T> per_thread(T initial) const {
    return PerThread<T>(grid_.n_threads, initial);
  }

  /// Returns an array that all threads share, 16-byte aligned and not initialized. All arrays together fit into
  /// scratch_bytes.
  template <class T>
  [[nodiscard]] std::span<T> scratch(std::size_t n) {
    const std::size_t pieces = (n * sizeof(T) + 15) / 16;
    core::require(n_taken_ + pieces <= scratch_.size(), "a kernel uses at most the scratch memory of its grid");
    T* begin = reinterpret_cast<T*>(scratch_.data() + n_taken_);
    n_taken_ += pieces;
    return {begin, n};
  }

  /// Combines values of all threads by combine(a, b) and gives all the result; then all wait for one another. Combines
  /// halves of a warp, then quarters, ...; then warps one after another.
  template <class T, class Combine>
  [[nodiscard]] T reduce(const PerThread<T>& values, Combine combine) const {
    const PerThread<T> of_warps = reduce_warps(values, combine);
    T total = of_warps[0];
    for (int thread = warp_size; thread < grid_.n_threads; thread += warp_size)
      total = combine(total, of_warps[thread]);
    return total;
  }
  /// Combines the values of each warp in the same order, and gives its threads the result. They wait for no other warp.
  template <class T, class Combine>
  [[nodiscard]] PerThread<T> reduce_warps(const PerThread<T>& values, Combine combine) const {
    PerThread<T> totals = values;
    for (int first = 0; first < grid_.n_threads; first += warp_size) {
      for (int n = warp_size / 2; n > 0; n /= 2)
        for (int lane = 0; lane < n; ++lane)
          totals[first + lane] = combine(totals[first + lane], totals[first + lane + n]);
      for (int lane = 1; lane < warp_size; ++lane) totals[first + lane] = totals[first];
    }
    return totals;
  }
  template <class T>
  [[nodiscard]] T sum(const PerThread<T>& values) const {
    return reduce(values, [](T a, T b) { return a + b; });
  }

 private:
  struct alignas(16) Piece {
    std::byte bytes[16];
  };

  /// Makes a different permutation for each phase.
  void shuffle(std::vector<int>& threads) {
    for (std::size_t n = threads.size(); n > 1; --n) {
      random_ = random_ * 6364136223846793005u + 1442695040888963407u;
      std::swap(threads[n - 1], threads[(random_ >> 33) % n]);
    }
  }

  Grid grid_;
  unsigned block_;
  ThreadOrder order_;
  std::vector<Piece> scratch_;
  std::size_t n_taken_ = 0;
  std::uint64_t random_ = 1;
};

/// Runs a kernel; blocks run in the given order, too, because they must not depend on one another.
template <class Body>
void run_on_host(const Body& body, const Grid& grid, ThreadOrder order = ThreadOrder::ascending) {
  core::require(grid.n_threads % warp_size == 0 && grid.n_threads <= Body::max_threads,
                "a block consists of whole warps and has at most max_threads");
  for (unsigned i = 0; i < grid.n_blocks; ++i) {
    HostTeam team{grid, order == ThreadOrder::ascending ? i : grid.n_blocks - 1 - i, order};
    body(team);
  }
}

}  // namespace lockstep::runtime::kernel
