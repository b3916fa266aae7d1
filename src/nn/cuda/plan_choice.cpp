#include "nn/cuda/plan_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "core/fnv.hpp"

namespace lockstep::nn::cuda {
namespace {

constexpr int n_rounds = 5;
constexpr double hopeless = 1.5;
// For the first round, in which some code is still being loaded.
constexpr double hopeless_at_once = 5;
constexpr double loading_s = 0.01;

// Returns a name as a number that a double can hold.
double number_of(const std::string& name) { return static_cast<double>(core::fnv1a(name) >> 12); }

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

struct Choice {
  std::string name{};
  double seconds = std::numeric_limits<double>::infinity();
};

Choice find_fastest(PlanMaker& maker) {
  const std::vector<std::string> names = maker.offer(false);
  const std::vector<double> times = median_seconds(names.size(), [&](std::size_t i) { return maker.seconds(i); });
  const auto fastest = std::ranges::min_element(times);
  if (fastest == times.end() || std::isinf(*fastest)) return {};
  maker.note(times);
  return {names[static_cast<std::size_t>(fastest - times.begin())], *fastest};
}

}  // namespace

std::vector<double> median_seconds(std::size_t n, const std::function<double(std::size_t)>& seconds) {
  constexpr double never = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> times(n);
  std::vector<bool> is_in(n, true);
  std::vector<double> first(n, never);
  for (std::size_t i = 0; i < n; ++i) first[i] = seconds(i);
  const double best_first = n > 0 ? std::ranges::min(first) : never;
  for (std::size_t i = 0; i < n; ++i)
    is_in[i] = !std::isinf(first[i]) && first[i] <= hopeless_at_once * best_first + loading_s;
  for (int round = 0; round < n_rounds; ++round) {
    double best = never;
    for (std::size_t i = 0; i < n; ++i)
      if (is_in[i]) times[i].push_back(seconds(i));
    for (std::size_t i = 0; i < n; ++i)
      if (is_in[i]) best = std::min(best, std::ranges::min(times[i]));
    for (std::size_t i = 0; i < n; ++i) is_in[i] = is_in[i] && std::ranges::min(times[i]) <= hopeless * best;
  }
  std::vector<double> medians(n, never);
  for (std::size_t i = 0; i < n; ++i)
    if (!times[i].empty()) medians[i] = median_of(times[i]);
  return medians;
}

void choose_plan(const std::string& key, PlanMaker& maker, PlanCache& cache,
                 const std::function<void(std::span<double>)>& agree, bool is_anew) {
  const StoredPlan* const kept = is_anew ? nullptr : cache.find(key);
  const Choice mine = kept != nullptr ? Choice{kept->name, kept->seconds} : find_fastest(maker);
  std::array<double, 2> told{mine.name.empty() ? -1 : number_of(mine.name), mine.seconds};
  if (agree) agree(told);
  const auto is_told = [&](const std::string& name) { return number_of(name) == told[0]; };
  if (kept != nullptr && is_told(mine.name)) return;
  std::vector<std::string> names = maker.offer(false);
  auto found = std::ranges::find_if(names, is_told);
  if (found == names.end() && told[0] >= 0) {  // another rank had more time
    names = maker.offer(true);
    found = std::ranges::find_if(names, is_told);
  }
  if (told[0] < 0) {
    const std::string obstacle = maker.obstacle();
    core::fail_system(fmt::format("no cuDNN plan for {} runs here{}{}", key, obstacle.empty() ? "" : ": ", obstacle));
  }
  if (found == names.end())
    core::fail_system(
        fmt::format("this rank cannot build the plan for {} that rank 0 uses: GPUs, drivers and libraries of all ranks "
                    "must be the same",
                    key));
  cache.add(key, {*found, told[1], maker.store(static_cast<std::size_t>(found - names.begin()))});
}

}  // namespace lockstep::nn::cuda
