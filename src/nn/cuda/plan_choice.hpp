// Chooses among a library's ways to compute something: the fastest here, or the one that an earlier run chose.
// Invariant: all ranks use the same plan; the times of one rank decide.
// Used by nn/cuda's convolutions; independent of any library.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "nn/cuda/plan_cache.hpp"

namespace lockstep::nn::cuda {

/// The plans that a library offers for one problem.
class PlanMaker {
 public:
  virtual ~PlanMaker() = default;
  /// Returns the plans' names, each once, the most promising first; always the same. May take a while. `all`: from then
  /// on includes plans that were left out to save time.
  [[nodiscard]] virtual std::vector<std::string> offer(bool all) = 0;
  /// Runs a plan and returns its time; infinity if it cannot run.
  [[nodiscard]] virtual double seconds(std::size_t plan) = 0;
  /// Called when all are timed and at least one ran: the times of median_seconds(), in the order of the last offer().
  virtual void note(std::span<const double> medians) = 0;
  /// Why the last plan that failed could not run; "" if all could.
  [[nodiscard]] virtual std::string obstacle() const = 0;
  [[nodiscard]] virtual std::vector<std::byte> store(std::size_t plan) = 0;
};

/// Adds the plan to use to the cache, unless it has one; `is_anew`: always times. Collective like `agree`
/// (ExecutorOptions::agree, or none), which it calls once. `key`: the problem, in words. Throws core::Error (system) if
/// no offered plan runs, or if the other ranks' plan is not offered.
void choose_plan(const std::string& key, PlanMaker& maker, PlanCache& cache,
                 const std::function<void(std::span<double>)>& agree, bool is_anew = false);

/// Measures `n` things by seconds(i) and returns medians over rounds in which all take turns; a first round does not
/// count. Drops those that take 1.5 times as long as the best, or in the first round 5 times as long plus 10 ms.
/// Returns infinity for those that cannot run or were not measured.
[[nodiscard]] std::vector<double> median_seconds(std::size_t n, const std::function<double(std::size_t)>& seconds);

}  // namespace lockstep::nn::cuda
