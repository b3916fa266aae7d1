#include "nn/graph/initialize.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>

#include "core/error.hpp"
#include "core/fnv.hpp"
#include "core/rng.hpp"

namespace lockstep::nn {
namespace {

using Words = std::array<std::uint32_t, 4>;
using Numbers = std::array<float, 4>;

/// Uniform numbers in [-1, 1), on a grid of 2^-23.
Numbers uniform(const Words& words) noexcept {
  const auto number = [](std::uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-23f - 1; };
  return {number(words[0]), number(words[1]), number(words[2]), number(words[3])};
}

/// Standard normal numbers, by Box and Muller (1958): a pair of words gives a pair of numbers, at most 6.7 from 0.
Numbers normal(const Words& words) noexcept {
  Numbers numbers{};
  for (std::size_t i = 0; i < numbers.size(); i += 2) {
    const float radius = std::sqrt(-2 * std::log((static_cast<float>(words[i]) + 1) * 0x1p-32f));
    const float angle = 2 * std::numbers::pi_v<float> * static_cast<float>(words[i + 1]) * 0x1p-32f;
    numbers[i] = radius * std::cos(angle);
    numbers[i + 1] = radius * std::sin(angle);
  }
  return numbers;
}

/// Where the numbers of a parameter come from, and the first of its elements that are asked for.
struct Source {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;
  std::size_t first = 0;
};

/// Element i of a parameter is `scale` times number i % 4 of block i / 4 of its stream.
template <class Draw>
void fill(const Source& from, float scale, std::span<float> values, Draw draw) {
  const auto low = [](std::uint64_t value) { return static_cast<std::uint32_t>(value); };
  const auto high = [](std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32); };
  for (std::size_t begin = 0; begin < values.size();) {
    const std::uint64_t block = (from.first + begin) / 4;
    const std::size_t skipped = (from.first + begin) % 4;
    const Numbers numbers = draw(core::philox({low(from.seed), high(from.seed)},
                                              {low(block), high(block), low(from.stream), high(from.stream)}));
    const std::span<float> part = values.subspan(begin, std::min(4 - skipped, values.size() - begin));
    for (std::size_t i = 0; i < part.size(); ++i) part[i] = scale * numbers[skipped + i];
    begin += part.size();
  }
}

}  // namespace

void initialize(const Parameter& parameter, std::uint64_t seed, std::span<float> logical) {
  core::require(logical.size() == n_elements(parameter.shape), "a parameter is initialized as a whole");
  initialize_part(parameter, seed, 0, logical);
}

void initialize_part(const Parameter& parameter, std::uint64_t seed, std::size_t first, std::span<float> part) {
  core::require(first + part.size() <= n_elements(parameter.shape), "a part lies within its parameter");
  const Source from{seed, core::fnv1a(parameter.name), first};
  const double fan = static_cast<double>(parameter.fan);
  switch (parameter.init) {
    case Init::zeros: std::fill(part.begin(), part.end(), 0.0f); return;
    case Init::ones: std::fill(part.begin(), part.end(), 1.0f); return;
    case Init::uniform_fan_in: fill(from, static_cast<float>(1 / std::sqrt(fan)), part, uniform); return;
    case Init::kaiming_normal_fan_out: fill(from, static_cast<float>(std::sqrt(2 / fan)), part, normal); return;
    case Init::normal: fill(from, 1.0f, part, normal); return;
  }
}

}  // namespace lockstep::nn
