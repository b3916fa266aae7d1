#include "training/train/arena_slots.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "optim/optimizer_spec.hpp"
#include "training/train/model.hpp"

namespace lockstep::training {
namespace {

/// A step touches at most as many rows as its samples have ids. If that is a small part of the table, only those rows
/// are zeroed, summed and read; otherwise processing the whole table is faster.
constexpr std::uint64_t least_rows_per_id = 4;

/// Optimizers with rates of tensors leave out biases and normalization, as in the papers of LARS and LAMB (You et al.
/// 2017, 2019). The others treat all alike, like PyTorch.
bool decays(const nn::Parameter& parameter, const Recipe& recipe) {
  return parameter.shape.size() > 1 || !optim::needs_norms(recipe.optimizer.kind);
}

std::uint64_t elements_in_tables(const Recipe& recipe, const nn::Network& network) {
  std::uint64_t n = 0;
  for (std::size_t i = 0; i < network.parameters().size(); ++i)
    if (find_sparse(network, static_cast<int>(i), recipe) != nullptr)
      n += nn::n_elements(network.parameters()[i].shape);
  return n;
}

}  // namespace

const nn::Embedding* find_sparse(const nn::Network& network, int parameter, const Recipe& recipe) {
  if (recipe.deterministic || !recipe.device.sums_rows || network.n_readers(parameter) > 1) return nullptr;
  const auto table = find_table(network, parameter);
  const bool is_sparse = table && recipe.batch * table->n_ids * least_rows_per_id <= table->embedding->n_rows;
  return is_sparse ? table->embedding : nullptr;
}

bool has_large_tables(const Recipe& recipe, const nn::Network& network) {
  return 4 * elements_in_tables(recipe, network) > network.n_parameter_elements();
}

void check_tables(const Recipe& recipe, const nn::Network& network) {
  if (!parallel::divides_parameters(recipe.strategy_or_least()) || !has_large_tables(recipe, network)) return;
  core::fail_usage({.what = fmt::format("{} of {} parameters are in tables of embeddings whose touched rows are summed",
                                        elements_in_tables(recipe, network), network.n_parameter_elements()),
                    .where = fmt::format("strategy {}", name(*recipe.strategy)),
                    .expected = "at most a quarter: each node keeps these tables whole, so little would be divided",
                    .fix = "--strategy zero2; or --deterministic, which sums whole tables and divides them"});
}

std::vector<parallel::Slot> slots_of(const nn::Network& network, const nn::Executor& executor, const Recipe& recipe) {
  std::vector<parallel::Slot> slots;
  for (const nn::ArenaSlot& slot : executor.slots()) {
    const nn::Embedding* const sparse = find_sparse(network, slot.parameter, recipe);
    const nn::Parameter& parameter = network.parameters()[static_cast<std::size_t>(slot.parameter)];
    slots.push_back({.name = parameter.name,
                     .slice = slot.slice,
                     .decays = decays(parameter, recipe),
                     .row_elements = sparse != nullptr ? sparse->width : 0,
                     .block = slot.block,
                     .has_padding = slot.slice.count > nn::n_elements(parameter.shape),
                     .unit = slot.unit});
  }
  return slots;
}

}  // namespace lockstep::training
