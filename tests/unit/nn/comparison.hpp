// Shared by tests that compare a backend with the reference.
// Invariant: parameters and samples are rounded for both to the backend's type.
// Used by the tests of nn/host and nn/cuda.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "unit/nn/cases.hpp"

namespace lockstep::nn {

[[nodiscard]] ExecutorOptions options_of(const Case& given, Precision precision = Precision::f32);

/// Places matrices at multiples of 1024 elements, then vectors: as in training, and with gaps. The matrices of a block
/// are a unit, and so is each that is outside of blocks or shared; numbers are in the order of backward.
[[nodiscard]] std::vector<Placed> place_with_gaps(std::span<const Unplaced> parameters);

/// What passes of a case report of units that place_with_gaps() makes: "+unit " if it is needed, "-unit " if it is
/// done.
struct WalkCase {
  Case given{};
  std::string forward{}, backward{};
  std::uint64_t fewest = 1;  ///< samples of a pass in training
};
/// Layers without blocks, blocks, and a weight that layers at both ends share.
[[nodiscard]] std::vector<WalkCase> walk_cases();

[[nodiscard]] std::vector<float> to_precision(const std::vector<double>& exact, Precision precision);

/// The rule documented for nn/host's MaskKey: word e % 4 of counter e / 4, by node, sample and a key of seed and epoch.
[[nodiscard]] bool keeps(std::uint64_t seed, std::uint64_t epoch, int node, std::uint64_t id, std::uint64_t element,
                         double probability);

/// Largest |a - b| over the largest |b|, or over 1e-3: gradients may cancel out.
template <class A, class B>
double relative_error(const A& a, const B& b) {
  double error = 0, magnitude = 1e-3;
  for (std::size_t i = 0; i < b.size(); ++i) {
    const double difference = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    // A NaN must not count as small, nor be replaced by later values.
    if (!std::isnan(error) && !(difference > -error && difference < error))
      error = difference < 0 ? -difference : difference;
    magnitude = std::max(magnitude, std::abs(static_cast<double>(b[i])));
  }
  return a.size() == b.size() ? error / magnitude : 1e30;
}

}  // namespace lockstep::nn
