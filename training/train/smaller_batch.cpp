#include "training/train/smaller_batch.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "data/load/loader.hpp"
#include "training/recipe/check.hpp"
#include "training/recipe/cuts.hpp"
#include "training/recipe/keys.hpp"
#include "training/recipe/specs.hpp"

namespace lockstep::training {
namespace {

constexpr std::uint64_t most_tries = 100'000;

struct Candidate {
  Recipe recipe;
  std::uint64_t at_a_time;
};

class Search {
 public:
  Search(const Recipe& recipe, const TooLarge& all, int n_ranks, const PlanActivations& plan)
      : recipe_{recipe},
        all_{all},
        n_ranks_{n_ranks},
        plan_{plan},
        groups_follow_{recipe.bn_group > 0 && recipe.bn_group == least_part(recipe)} {}

  /// The next candidate between one that fits and one that does not, alternately halfway and by proportion.
  [[nodiscard]] std::optional<Candidate> smaller() const {
    std::optional<Candidate> fitting;
    Known least{0, 0}, most{all_.at_a_time, all_.activations};
    for (bool halves = true; most.at_a_time > least.at_a_time + 1; halves = !halves) {
      std::optional<Candidate> next =
          largest_within(halves ? std::midpoint(least.at_a_time, most.at_a_time) : in_proportion(least, most));
      if (!next || next->at_a_time <= least.at_a_time) next = next_after(fitting ? fitting->recipe.batch : 0);
      if (!next || next->at_a_time <= least.at_a_time || next->at_a_time >= most.at_a_time) break;
      const std::optional<std::uint64_t> taken = bytes(*next);
      const Known known{.at_a_time = next->at_a_time, .bytes = taken.value_or(least.bytes)};
      if (taken && *taken > all_.room) {
        most = known;
      } else {
        least = known;
      }
      if (taken && *taken <= all_.room) fitting = std::move(next);
    }
    return fitting;
  }

  /// The batch in parts of at most `n` samples.
  [[nodiscard]] std::optional<Candidate> in_parts(std::uint64_t n) const {
    const std::uint64_t end = std::min(recipe_.batch, recipe_.accumulate + most_tries);
    for (std::uint64_t parts = recipe_.accumulate + 1; parts <= end; ++parts)
      if (recipe_.batch % parts == 0)
        if (auto candidate = make(recipe_.batch, parts); candidate && candidate->at_a_time <= n) return candidate;
    return std::nullopt;
  }

 private:
  struct Known {
    std::uint64_t at_a_time, bytes;
  };

  /// Where the room would end if bytes grew evenly between the two.
  [[nodiscard]] std::uint64_t in_proportion(const Known& least, const Known& most) const {
    const double share = static_cast<double>(all_.room - std::min(least.bytes, all_.room)) /
                         static_cast<double>(most.bytes - std::min(least.bytes, most.bytes - 1));
    const auto distance = static_cast<std::uint64_t>(share * static_cast<double>(most.at_a_time - least.at_a_time));
    return std::clamp(least.at_a_time + distance, least.at_a_time + 1, most.at_a_time - 1);
  }

  /// Returns nothing if it cannot be planned, as for groups of one sample.
  [[nodiscard]] std::optional<std::uint64_t> bytes(const Candidate& candidate) const {
    std::optional<std::uint64_t> taken;
    static_cast<void>(core::complaint_of([&] { taken = plan_(candidate.recipe, candidate.at_a_time); }));
    return taken;
  }

  /// Returns nothing if it would be refused.
  [[nodiscard]] std::optional<Candidate> make(std::uint64_t batch, std::uint64_t parts) const {
    ResolvedRecipe resolved{.recipe = recipe_, .origins = std::vector<Origin>(all_keys().size())};
    Recipe& recipe = resolved.recipe;
    recipe.batch = batch;
    recipe.accumulate = parts;
    if (groups_follow_) recipe.bn_group = least_part(recipe);
    const auto refusal = core::complaint_of([&] {
      check_cuts(resolved);
      check_ranks(recipe, n_ranks_);
    });
    if (refusal) return std::nullopt;
    const std::uint64_t most =
        data::batch_plan(loader_options(recipe, false, n_ranks_), std::min(batch, all_.batch), 0, n_ranks_).most();
    return Candidate{recipe, samples_at_a_time(recipe, most, n_ranks_)};
  }

  [[nodiscard]] std::optional<Candidate> largest_within(std::uint64_t n) const {
    const std::uint64_t parts =
        recipe_.accumulate * (recipe_.has_lanes() ? recipe_.lanes / static_cast<std::uint64_t>(n_ranks_) : 1);
    const std::uint64_t most = std::min(all_.batch - 1, n * static_cast<std::uint64_t>(n_ranks_) * parts);
    for (std::uint64_t batch = most; batch > 0 && most - batch < most_tries; --batch)
      if (auto candidate = make(batch, recipe_.accumulate); candidate && candidate->at_a_time <= n) return candidate;
    return std::nullopt;
  }

  [[nodiscard]] std::optional<Candidate> next_after(std::uint64_t batch) const {
    const std::uint64_t end = std::min(all_.batch, batch + most_tries);
    while (++batch < end)
      if (auto candidate = make(batch, recipe_.accumulate)) return candidate;
    return std::nullopt;
  }

  const Recipe& recipe_;
  const TooLarge& all_;
  int n_ranks_;
  const PlanActivations& plan_;
  bool groups_follow_;
};

}  // namespace

Fitting find_fitting(const Recipe& recipe, const TooLarge& all, int n_ranks, const PlanActivations& plan) {
  const Search search{recipe, all, n_ranks, plan};
  Fitting fitting;
  const std::optional<Candidate> smaller = search.smaller();
  if (smaller) fitting.smaller = smaller->recipe;
  if (smaller)
    if (const auto in_parts = search.in_parts(smaller->at_a_time)) fitting.in_parts = in_parts->recipe;
  return fitting;
}

}  // namespace lockstep::training
