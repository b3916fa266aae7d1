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

/// Whether elements of `slot` before `at`, the begin of a block, belong to its first rows (as many as its blocks hold),
/// and later ones to the others. `layout` packs and unpacks.
template <class Layout>
bool parts_rows(const Layout& layout, const ArenaSlot& slot, std::size_t n_logical, std::size_t at) {
  std::vector<float> logical(n_logical), physical(slot.slice.count);
  for (std::size_t i = 0; i < n_logical; ++i) logical[i] = 1 + static_cast<float>(i / slot.n_inner % slot.n_rows);
  layout.pack(slot.parameter, slot.all_rows(), logical, physical);
  const auto n_rows = static_cast<float>(std::min(at / slot.block * slot.block_rows, slot.n_rows));
  const auto cut = physical.begin() + static_cast<std::ptrdiff_t>(at);
  return *std::max_element(physical.begin(), cut) == n_rows &&
         std::all_of(cut, physical.end(), [&](float row) { return row == 0 || row > n_rows; });
}

/// Whether rows on both sides of `at`, each packed separately, equal their part of the whole.
template <class Layout>
bool parts_values(const Layout& layout, const ArenaSlot& slot, std::size_t n_logical, std::size_t at) {
  std::vector<float> logical(n_logical), physical(slot.slice.count);
  for (std::size_t i = 0; i < n_logical; ++i) logical[i] = 1 + static_cast<float>(i);
  layout.pack(slot.parameter, slot.all_rows(), logical, physical);
  const std::size_t cut = std::min(at / slot.block * slot.block_rows, slot.n_rows);
  const std::size_t n_outer = n_logical / slot.n_rows / slot.n_inner;
  bool is_right = true;
  for (const bool is_first : {true, false}) {
    const core::Slice rows = is_first ? core::Slice{0, cut} : core::Slice{cut, slot.n_rows - cut};
    const core::Slice elements = is_first ? core::Slice{0, at} : core::Slice{at, slot.slice.count - at};
    std::vector<float> part(n_outer * rows.count * slot.n_inner), again(elements.count, 7);
    layout.unpack(slot.parameter, rows, elements.of(std::span{physical}), part);
    std::size_t i = 0;
    for (std::size_t outer = 0; outer < n_outer; ++outer)
      for (std::size_t row = rows.offset; row < rows.end(); ++row)
        for (std::size_t inner = 0; inner < slot.n_inner; ++inner)
          is_right = is_right && part[i++] == logical[(outer * slot.n_rows + row) * slot.n_inner + inner];
    layout.pack(slot.parameter, rows, part, again);
    is_right = is_right && std::ranges::equal(again, elements.of(std::span{physical}));
  }
  return is_right;
}

}  // namespace lockstep::nn
