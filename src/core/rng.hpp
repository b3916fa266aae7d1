// Counter-based random numbers: a value is a pure function of (key, counter), so it is the same on any rank and thread.
// Invariant: bit-equal to Random123's philox4x32-10 (Salmon et al., SC'11).
// Used by data/ (orders, augmentation, synthetic samples), nn/ (initial weights, dropout), io/ and reduce_all/.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace lockstep::core {

/// One Philox4x32-10 block: four random words for a 64-bit key and a 128-bit counter. GPU kernels also call it.
[[nodiscard]] constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 2> key,
                                                            std::array<std::uint32_t, 4> counter) noexcept {
  constexpr std::uint64_t multiplier_0 = 0xd251'1f53, multiplier_1 = 0xcd9e'8d57;
  constexpr std::uint32_t weyl_0 = 0x9e37'79b9, weyl_1 = 0xbb67'ae85;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product_0 = multiplier_0 * counter[0];
    const std::uint64_t product_1 = multiplier_1 * counter[2];
    counter = {static_cast<std::uint32_t>(product_1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(product_1),
               static_cast<std::uint32_t>(product_0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product_0)};
    key = {key[0] + weyl_0, key[1] + weyl_1};
  }
  return counter;
}

/// A sequence of numbers over Philox: element i of stream `stream` for `seed`. Cheap to copy.
class Random {
 public:
  explicit Random(std::uint64_t seed, std::uint64_t stream = 0) noexcept : seed_{seed}, stream_{stream} {}

  [[nodiscard]] std::uint64_t next() noexcept;
  /// Uniform in [0, bound), without bias (Lemire 2019). `bound` > 0.
  [[nodiscard]] std::uint64_t below(std::uint64_t bound) noexcept;
  /// Uniform in [0, 1) with 53 random bits.
  [[nodiscard]] double uniform() noexcept;

 private:
  std::uint64_t seed_;
  std::uint64_t stream_;
  std::uint64_t position_ = 0;
};

/// Random permutation in place, the same for the same generator state (Fisher-Yates).
template <class Range>
void shuffle(Range& range, Random& random) {
  for (auto n = range.size(); n > 1; --n) {
    using std::swap;
    swap(range[n - 1], range[static_cast<std::size_t>(random.below(n))]);
  }
}

}  // namespace lockstep::core
