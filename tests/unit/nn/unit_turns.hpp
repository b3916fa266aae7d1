// An executor whose units take turns in the places of a pool, to compare with one that has whole arenas.
// Invariant: a place has a unit's parameters from need() to done(), and otherwise NaN. Gradients leave it when ready.
// Used by the tests of nn/host and nn/cuda.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/rng.hpp"
#include "unit/nn/comparison.hpp"

namespace lockstep::nn {

/// What passes give: of a batch and of no samples, writing gradients and adding them.
struct PassResults {
  std::vector<double> losses{};
  std::vector<std::vector<float>> gradients{};  ///< of each parameter, in logical order, after each backward pass
  std::string not_finite{};                     ///< names that Inspection finds; none is right

  friend bool operator==(const PassResults&, const PassResults&) = default;
};

/// Units that have their values at the same time, the smaller first.
using UnitPairs = std::set<std::pair<std::size_t, std::size_t>>;
struct TogetherInPass {
  UnitPairs parameters{};  ///< from need() to done()
  UnitPairs gradients{};   ///< from need() to the last ready()

  friend bool operator==(const TogetherInPass&, const TogetherInPass&) = default;
};

struct TurnsOutcome {
  PassResults results{};
  TogetherInPass together{};
  std::size_t n_turns = 0;  ///< how often parameters came to a place in which those of another unit were
};

using MakeExecutor = std::function<std::unique_ptr<Executor>(const Network&, const ExecutorOptions&)>;

/// The outcome with whole arenas.
[[nodiscard]] TurnsOutcome pass_in_arenas(const MakeExecutor& make, const Case& given, const ExecutorOptions& options);
/// With unit u in place u mod `n_places`, unless one of `together` is there already: then it has a place of its own.
/// Gradients have other places than parameters. Slots without a unit are in arenas.
[[nodiscard]] TurnsOutcome pass_in_pool(const MakeExecutor& make, const Case& given, const ExecutorOptions& options,
                                        const TogetherInPass& together, std::size_t n_places);

/// A network, with a batch for it: layers one after another, some in blocks, some around others, some of which read the
/// first layer's weight.
[[nodiscard]] Network drawn_network(core::Random& random);
[[nodiscard]] Case drawn_case(std::uint64_t seed);
/// The places of place_with_gaps(), with its units or other ones.
[[nodiscard]] PlaceParameters drawn_units(std::uint64_t seed);

}  // namespace lockstep::nn
