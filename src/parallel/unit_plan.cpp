#include "parallel/unit_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "parallel/slots.hpp"

namespace lockstep::parallel {
namespace {

/// The matrices of one block or one matrix alone, or several of these that were joined.
struct Run {
  std::string first_name{};
  std::string last_name{};
  std::vector<std::size_t> tensors{};
  std::size_t n_elements = 0;
  bool is_resident = false;

  [[nodiscard]] std::string name() const {
    return first_name == last_name ? first_name : fmt::format("{} to {}", first_name, last_name);
  }
  void join(const Run& next) {
    last_name = next.last_name;
    tensors.insert(tensors.end(), next.tensors.begin(), next.tensors.end());
    n_elements += next.n_elements;
  }
};

std::vector<Run> find_runs(std::span<const UnitTensor> tensors) {
  std::vector<Run> runs;
  std::vector<std::string> blocks;  // that were found, the last one last
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto& [name, unit, n_elements, is_vector, is_shared] = tensors[i];
    if (is_vector) continue;
    const bool is_alone = unit.empty() || is_shared;
    const std::string& called = is_alone ? name : unit;
    const Run one{called, called, {i}, n_elements, is_shared};
    if (!is_alone && !blocks.empty() && blocks.back() == unit) {
      runs.back().join(one);
      continue;
    }
    core::require(is_alone || std::ranges::find(blocks, unit) == blocks.end(),
                  "the matrices of a block are neighbours in the order of backward");
    blocks.push_back(is_alone ? "" : unit);
    runs.push_back(one);
  }
  return runs;
}

/// Joins runs from the first on until they have `least` elements; what is left joins the run before.
std::vector<Run> join_small(const std::vector<Run>& runs, std::size_t least) {
  std::vector<Run> joined;
  const auto join_rest = [&] {
    const std::size_t n = joined.size();
    if (n < 2 || joined[n - 1].n_elements >= least || joined[n - 1].is_resident || joined[n - 2].is_resident) return;
    joined[n - 2].join(joined[n - 1]);
    joined.pop_back();
  };
  for (const Run& run : runs) {
    if (run.is_resident) join_rest();
    const bool joins =
        !joined.empty() && !run.is_resident && !joined.back().is_resident && joined.back().n_elements < least;
    if (joins)
      joined.back().join(run);
    else
      joined.push_back(run);
  }
  join_rest();
  return joined;
}

}  // namespace

UnitPlan plan_units(std::span<const UnitTensor> tensors, const UnitOptions& options) {
  UnitPlan plan{.places = std::vector<core::Slice>(tensors.size())};
  std::size_t at = 0;
  for (Run& run : join_small(find_runs(tensors), options.least_elements)) {
    Unit unit{.name = run.name(), .slice = {.offset = at}, .is_resident = run.is_resident};
    for (const std::size_t i : run.tensors) {
      plan.places[i] = {at, tensors[i].n_elements};
      at = core::round_up(plan.places[i].end(), block_elements);
    }
    at = core::round_up(at, options.n_parts * block_elements);
    unit.slice.count = at - unit.slice.offset;
    unit.tensors = std::move(run.tensors);
    plan.units.push_back(std::move(unit));
  }
  plan.vectors.offset = at;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].is_vector) continue;
    plan.places[i] = {at, tensors[i].n_elements};
    at = core::round_up(plan.places[i].end(), alignment);
  }
  plan.vectors.count = at - plan.vectors.offset;
  return plan;
}

}  // namespace lockstep::parallel
