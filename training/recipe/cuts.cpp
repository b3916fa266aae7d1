#include "training/recipe/cuts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/error.hpp"
#include "parallel/lanes.hpp"

namespace lockstep::training {
namespace {

/// Returns nothing if groups do not fit the ranks' parts of a batch. A group over several ranks is also a slice of the
/// batch. With several parts it would span parts that each rank computes one after another.
std::optional<std::uint64_t> find_ranks_of_group(const Recipe& recipe, std::uint64_t n_ranks) noexcept {
  if (recipe.bn_group == 0 || recipe.has_lanes()) return 1;
  if (recipe.batch % (n_ranks * recipe.accumulate * recipe.bn_group) == 0) return 1;
  if (recipe.accumulate > 1) return std::nullopt;
  if (recipe.bn_group == recipe.batch) return n_ranks;  // parts whose sizes differ by one sample are also allowed
  const bool is_whole = recipe.batch % n_ranks == 0 && recipe.bn_group % (recipe.batch / n_ranks) == 0;
  if (!is_whole || recipe.batch % recipe.bn_group != 0) return std::nullopt;
  return recipe.bn_group / (recipe.batch / n_ranks);
}

[[noreturn]] void fail_for_groups(const Recipe& recipe, std::uint64_t n_ranks) {
  const std::uint64_t parts = n_ranks * recipe.accumulate, part = recipe.batch / parts;
  const bool spans_parts = recipe.accumulate > 1 && recipe.bn_group > part;
  core::fail_usage(
      {.what = spans_parts
                   ? fmt::format("groups of {} samples span parts of a batch that are computed one after another",
                                 recipe.bn_group)
                   : fmt::format("groups of {} samples do not divide each rank's part of a batch of {}",
                                 recipe.bn_group, recipe.batch),
       .where = spans_parts ? "bn-group, accumulate" : "bn-group",
       .expected = fmt::format(
           "a divisor of {}, the samples that each of {} ranks has at a time{}", part, n_ranks,
           recipe.accumulate > 1 ? "" : ", or the samples of 2, 3, ... or all ranks, if they divide the batch"),
       .fix = fmt::format("--batch {}{}", recipe.bn_group * parts, spans_parts ? ", or --accumulate 1" : "")});
}

}  // namespace

void check_ranks(const Recipe& recipe, int n_ranks) {
  if (recipe.deterministic && recipe.order == data::Order::torch && n_ranks > 1)
    core::fail_usage({.what = "the order torch depends on the number of ranks",
                      .where = "order, deterministic",
                      .expected = "another order, or one rank",
                      .fix = "--order keyed"});
  const auto n = static_cast<std::uint64_t>(n_ranks);
  if (recipe.batch < n)
    core::fail_usage({.what = fmt::format("a batch of {} for {} ranks", recipe.batch, n_ranks),
                      .where = "batch",
                      .expected = fmt::format("at least a sample for each rank: {}", n_ranks),
                      .fix = fmt::format("--batch {}, or fewer ranks", n_ranks)});
  if (recipe.has_lanes()) parallel::require_lanes(static_cast<int>(recipe.lanes), n_ranks);
  if (!find_ranks_of_group(recipe, n)) fail_for_groups(recipe, n);
}

int ranks_of_group(const Recipe& recipe, int n_ranks) noexcept {
  return static_cast<int>(find_ranks_of_group(recipe, static_cast<std::uint64_t>(n_ranks)).value_or(1));
}

std::uint64_t unit_of_cuts(const Recipe& recipe) noexcept {
  return recipe.has_lanes() ? 1 : std::max<std::uint64_t>(1, recipe.bn_group);
}

std::uint64_t begin_of_part(const Recipe& recipe, std::uint64_t n, std::uint64_t part) noexcept {
  const std::uint64_t unit = unit_of_cuts(recipe);
  return std::min(n, div_up(n, unit) * part / recipe.accumulate * unit);
}

std::uint64_t samples_at_a_time(const Recipe& recipe, std::uint64_t most_of_rank, int n_ranks) noexcept {
  const std::uint64_t unit = unit_of_cuts(recipe);
  const std::uint64_t parts =
      recipe.accumulate * (recipe.has_lanes() ? recipe.lanes / static_cast<std::uint64_t>(n_ranks) : 1);
  return std::max<std::uint64_t>(1, std::min(most_of_rank, div_up(div_up(most_of_rank, unit), parts) * unit));
}

}  // namespace lockstep::training
