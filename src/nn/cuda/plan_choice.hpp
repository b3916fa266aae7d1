// Which of a library's ways to compute something is used: the fastest here, or the one that an earlier run found.
// Invariant: all ranks use the same, that of the rank whose times decide.
// Used by nn/cuda's convolutions; independent of any library.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "nn/cuda/plan_cache.hpp"

namespace lockstep::nn::cuda {

/// What a library offers for one problem.
class PlanMaker {
 public:
  virtual ~PlanMaker() = default;
  /// Names of the plans there are, each once, the most promising first; the same whenever asked. May take a while.
  /// `all`: from then on also those that were left out for want of time.
  [[nodiscard]] virtual std::vector<std::string> offer(bool all) = 0;
  /// Runs one of them; how long it took, infinity if it cannot run.
  [[nodiscard]] virtual double seconds(std::size_t plan) = 0;
  /// Once all are timed, and any ran: as median_seconds() has them, in the order in which they were offered last.
  virtual void note(std::span<const double> medians) = 0;
  /// Of the last that could not; "" if all could.
  [[nodiscard]] virtual std::string obstacle() const = 0;
  [[nodiscard]] virtual std::vector<std::byte> store(std::size_t plan) = 0;
};

/// Puts the one to use into the cache, where it is not there yet; `is_anew`: in any case, by timing. Collective as
/// `agree` is (ExecutorOptions::agree, or none), which is called once. `key`: the problem, in words. Throws
/// core::Error (system) if nothing is offered that runs, or not what the other ranks use.
void choose_plan(const std::string& key, PlanMaker& maker, PlanCache& cache,
                 const std::function<void(std::span<double>)>& agree, bool is_anew = false);

/// For `n` things, each measured by seconds(i): medians of rounds in which all take turns, after one that does not
/// count. Those that take 1.5 times as long as the best, or in the first round 5 times as long and 10 ms more, are not
/// measured further; infinity for those that cannot run, or were not measured.
[[nodiscard]] std::vector<double> median_seconds(std::size_t n, const std::function<double(std::size_t)>& seconds);

}  // namespace lockstep::nn::cuda
