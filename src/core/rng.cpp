#include "core/rng.hpp"

namespace lockstep::core {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::uint32_t high(std::uint64_t value) noexcept { return static_cast<std::uint32_t>(value >> 32); }
constexpr std::uint32_t low(std::uint64_t value) noexcept { return static_cast<std::uint32_t>(value); }

}  // namespace

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
