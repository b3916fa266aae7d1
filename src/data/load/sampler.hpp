// The order of samples: which sample is at position p of epoch e.
// Invariant: a function of (order, seed, epoch, position) and the set only, not of ranks, threads, caches or memory, so
// resuming takes one integer. Every sample occurs exactly once per epoch (except padding of `torch`).
// Used by data/load/loader.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace lockstep::data {

/// Enumerators equal the words of the command line.
enum class Order { keyed, torch, blocked, sequential };
inline constexpr std::array<Order, 4> all_orders{Order::keyed, Order::torch, Order::blocked, Order::sequential};
[[nodiscard]] std::string_view name(Order order) noexcept;

/// A bijection of [0, n) chosen by a key: a Feistel network on pairs (left, right) with left < a and right < b, a * b
/// just above n, keyed by Philox, which follows its cycle until inside. O(1) memory; `at` takes about 20 ns. Reference:
/// Black and Rogaway 2002, "Ciphers with arbitrary finite domains".
class KeyedPermutation {
 public:
  KeyedPermutation(std::uint64_t n, std::uint64_t key, std::uint64_t stream) noexcept;
  /// `position` < n.
  [[nodiscard]] std::uint64_t at(std::uint64_t position) const noexcept;

 private:
  [[nodiscard]] std::uint64_t encipher(std::uint64_t value) const noexcept;

  std::uint64_t n_;
  std::uint64_t n_left_;
  std::uint64_t n_right_;
  std::array<std::uint64_t, 8> round_keys_;
};

/// From here on torch.randperm draws other random numbers.
inline constexpr std::uint64_t torch_limit = 0xffff'ffffu / 20;

/// torch.randperm(n) of a generator seeded with `seed` (MT19937), as in DistributedSampler; n < torch_limit.
[[nodiscard]] std::vector<std::uint32_t> torch_permutation(std::uint64_t n, std::uint64_t seed);

struct SamplerOptions {
  Order order = Order::keyed;
  std::uint64_t seed = 1;
  /// blocked: chunks are permuted, then samples within windows of this many chunks.
  std::uint64_t window_chunks = 16;
};

class Sampler {
 public:
  /// `chunk_starts`: the first sample of each chunk of the set, ascending, for `blocked` (else empty). Throws
  /// core::Error (usage) if `torch` gets more samples than it can order, or the window is 0 chunks.
  Sampler(std::uint64_t n_samples, SamplerOptions options, std::vector<std::uint64_t> chunk_starts = {});
  ~Sampler();

  /// torch: makes the permutation of seed + epoch here, O(n).
  void begin_epoch(std::uint64_t epoch);
  /// The sample at `position` of the epoch.
  [[nodiscard]] std::uint64_t at(std::uint64_t position) const noexcept;
  /// The mean distance in the order between samples stored side by side, relative to that in a uniform permutation
  /// (n/3). 1 for keyed and torch, 0 for sequential; for blocked the mean over this epoch's windows.
  [[nodiscard]] double mixing() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::data
