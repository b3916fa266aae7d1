#include <cmath>

#include "core/rng.hpp"
#include "data/load/sampler.hpp"

namespace lockstep::data {
namespace {

__extension__ using Wide = unsigned __int128;

/// A number below `bound` that depends on all bits of `value` and `key`; the multipliers are MurmurHash3's.
std::uint64_t round_function(std::uint64_t value, std::uint64_t key, std::uint64_t bound) noexcept {
  std::uint64_t hash = (value ^ key) * 0xff51'afd7'ed55'8ccd;
  hash = (hash ^ (hash >> 32)) * 0xc4ce'b9fe'1a85'ec53;
  return static_cast<std::uint64_t>((static_cast<Wide>(hash) * bound) >> 64);
}

std::uint64_t add_modulo(std::uint64_t a, std::uint64_t b, std::uint64_t modulus) noexcept {
  const std::uint64_t sum = a + b;
  return sum >= modulus ? sum - modulus : sum;
}

/// The least a with a * a >= n; at least 1.
std::uint64_t root_above(std::uint64_t n) noexcept {
  auto root = static_cast<std::uint64_t>(std::sqrt(static_cast<double>(n)));
  while (static_cast<Wide>(root) * root < n) ++root;
  while (root > 1 && static_cast<Wide>(root - 1) * (root - 1) >= n) --root;
  return root > 0 ? root : 1;
}

}  // namespace

KeyedPermutation::KeyedPermutation(std::uint64_t n, std::uint64_t key, std::uint64_t stream) noexcept
    : n_{n}, n_left_{root_above(n)}, n_right_{n / n_left_ + (n % n_left_ != 0 ? 1 : 0)} {
  core::Random random{key, stream};
  for (std::uint64_t& round_key : round_keys_) round_key = random.next();
}

std::uint64_t KeyedPermutation::at(std::uint64_t position) const noexcept {
  std::uint64_t value = encipher(position);
  while (value >= n_)
    [[unlikely]]  // of a * b pairs fewer than a are outside
    value = encipher(value);
  return value;
}

std::uint64_t KeyedPermutation::encipher(std::uint64_t value) const noexcept {
  std::uint64_t left = value % n_left_;
  std::uint64_t right = value / n_left_;
  for (std::size_t round = 0; round < round_keys_.size(); round += 2) {
    left = add_modulo(left, round_function(right, round_keys_[round], n_left_), n_left_);
    right = add_modulo(right, round_function(left, round_keys_[round + 1], n_right_), n_right_);
  }
  return right * n_left_ + left;
}

}  // namespace lockstep::data
