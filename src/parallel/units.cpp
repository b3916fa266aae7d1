#include "parallel/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "parallel/slots.hpp"

namespace lockstep::parallel {
namespace {

std::size_t round_up(std::size_t n, std::size_t multiple) noexcept { return (n + multiple - 1) / multiple * multiple; }

/// The matrices of one scope, or of several that were joined.
struct Run {
  std::string first_scope{};
  std::string last_scope{};
  std::vector<std::size_t> tensors{};
  std::size_t n_elements = 0;

  [[nodiscard]] bool is_resident() const { return first_scope == resident_scope; }
  [[nodiscard]] std::string name() const {
    return first_scope == last_scope ? first_scope : fmt::format("{} to {}", first_scope, last_scope);
  }
  void join(const Run& next) {
    last_scope = next.last_scope;
    tensors.insert(tensors.end(), next.tensors.begin(), next.tensors.end());
    n_elements += next.n_elements;
  }
};

std::vector<std::size_t> find_matrices(std::span<const UnitTensor> tensors) {
  std::vector<std::size_t> matrices;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (!tensors[i].is_vector) matrices.push_back(i);
  return matrices;
}

/// Returns the scope of each matrix: its own, else that of the next one that has a scope, else the last scope.
std::vector<std::string> scopes_of(std::span<const UnitTensor> tensors, std::span<const std::size_t> matrices) {
  std::string next = resident_scope;
  for (const std::size_t i : matrices)
    if (!tensors[i].scope.empty()) next = tensors[i].scope;
  std::vector<std::string> scopes(matrices.size());
  for (std::size_t m = matrices.size(); m-- > 0;) {
    if (!tensors[matrices[m]].scope.empty()) next = tensors[matrices[m]].scope;
    scopes[m] = next;
  }
  return scopes;
}

/// Returns one run for each scope.
std::vector<Run> find_runs(std::span<const UnitTensor> tensors) {
  const std::vector<std::size_t> matrices = find_matrices(tensors);
  const std::vector<std::string> scopes = scopes_of(tensors, matrices);
  std::vector<Run> runs;
  for (std::size_t m = 0; m < matrices.size(); ++m) {
    const Run one{scopes[m], scopes[m], {matrices[m]}, tensors[matrices[m]].n_elements};
    if (!runs.empty() && runs.back().first_scope == scopes[m]) {
      runs.back().join(one);
      continue;
    }
    core::require(std::ranges::find(runs, scopes[m], &Run::first_scope) == runs.end(),
                  "the tensors of a block are neighbours in the order of backward");
    runs.push_back(one);
  }
  return runs;
}

/// Joins runs from the first on until they have `least` elements; what is left joins the run before.
std::vector<Run> join_small(const std::vector<Run>& runs, std::size_t least) {
  std::vector<Run> joined;
  const auto join_rest = [&] {
    const std::size_t n = joined.size();
    if (n < 2 || joined[n - 1].n_elements >= least || joined[n - 1].is_resident() || joined[n - 2].is_resident())
      return;
    joined[n - 2].join(joined[n - 1]);
    joined.pop_back();
  };
  for (const Run& run : runs) {
    if (run.is_resident()) join_rest();
    const bool joins =
        !joined.empty() && !run.is_resident() && !joined.back().is_resident() && joined.back().n_elements < least;
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
    Unit unit{.name = run.name(), .slice = {.offset = at}, .is_resident = run.is_resident()};
    for (const std::size_t i : run.tensors) {
      plan.places[i] = {at, tensors[i].n_elements};
      at = round_up(plan.places[i].end(), block_elements);
    }
    at = round_up(at, options.n_parts * block_elements);
    unit.slice.count = at - unit.slice.offset;
    unit.tensors = std::move(run.tensors);
    plan.units.push_back(std::move(unit));
  }
  plan.vectors.offset = at;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].is_vector) continue;
    plan.places[i] = {at, tensors[i].n_elements};
    at = round_up(plan.places[i].end(), alignment);
  }
  plan.vectors.count = at - plan.vectors.offset;
  return plan;
}

}  // namespace lockstep::parallel
