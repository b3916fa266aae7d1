#include "core/rng.hpp"

namespace lockstep::core {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::uint32_t high(std::uint64_t value) noexcept { return static_cast<std::uint32_t>(value >> 32); }
constexpr std::uint32_t low(std::uint64_t value) noexcept { return static_cast<std::uint32_t>(value); }

}  // namespace

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 2> key, std::array<std::uint32_t, 4> counter) noexcept {
  constexpr std::uint64_t multiplier_0 = 0xd251'1f53, multiplier_1 = 0xcd9e'8d57;
  constexpr std::uint32_t weyl_0 = 0x9e37'79b9, weyl_1 = 0xbb67'ae85;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product_0 = multiplier_0 * counter[0];
    const std::uint64_t product_1 = multiplier_1 * counter[2];
    counter = {high(product_1) ^ counter[1] ^ key[0], low(product_1), high(product_0) ^ counter[3] ^ key[1],
               low(product_0)};
    key = {key[0] + weyl_0, key[1] + weyl_1};
  }
  return counter;
}

std::uint64_t Random::next() noexcept {
  const auto block = philox({low(seed_), high(seed_)}, {low(position_), high(position_), low(stream_), high(stream_)});
  ++position_;
  return (static_cast<std::uint64_t>(block[1]) << 32) | block[0];
}

std::uint64_t Random::below(std::uint64_t bound) noexcept {
  const std::uint64_t n_rejected = (0 - bound) % bound;  // 2^64 mod bound
  Wide product = 0;
  do {
    product = static_cast<Wide>(next()) * bound;
  } while (static_cast<std::uint64_t>(product) < n_rejected);
  return static_cast<std::uint64_t>(product >> 64);
}

double Random::uniform() noexcept { return static_cast<double>(next() >> 11) * 0x1p-53; }

}  // namespace lockstep::core
