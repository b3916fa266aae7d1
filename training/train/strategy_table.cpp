#include "training/train/strategy_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "core/table.hpp"

namespace lockstep::training {
namespace {

/// The unit of a column: one for all rows.
struct ColumnUnit {
  double bytes = 1e6;
  std::string_view name = "(MB)";
};

ColumnUnit unit_for(std::uint64_t most_bytes) {
  return most_bytes < 10'000'000'000 ? ColumnUnit{} : ColumnUnit{1e9, "(GB)"};
}

std::string number_text(std::uint64_t bytes, const ColumnUnit& unit) {
  return core::format_number(static_cast<double>(bytes) / unit.bytes);
}

std::string to_send_text(const StrategyRow& row) {
  if (row.to_send) return core::format_number(row.to_send->value * 1e3);
  return row.sent_bytes == 0 ? "0" : "?";
}

/// Whether the products of a step take longer than sending: all of it, or the half that does not follow the update.
std::string hidden_text(const StrategyRow& row, const StrategyTable& table) {
  if (row.sent_bytes == 0) return "-";
  if (!row.to_send || !table.products) return "?";
  if (!table.is_one_pass) return "no";
  const bool gathers_after_update =
      parallel::divides_states(row.strategy) && !parallel::divides_parameters(row.strategy);
  if (row.to_send->value / (gathers_after_update ? 2 : 1) > table.products->value) return "unsure";
  return gathers_after_update ? "half" : "yes";
}

std::string rates_text(const StrategyTable& table) {
  const bool sends = std::ranges::any_of(table.rows, [](const StrategyRow& row) { return row.sent_bytes > 0; });
  if (!sends) return "";
  if (!table.rate) return "to send: not measured; reduce_all -b 25M -e 25M on the same ranks measures the rate\n";
  std::string text =
      fmt::format("to send: at {} GB/s of each rank, measured now by an all-reduce of {} between nodes\n",
                  core::format_number(table.rate->GBps), core::format_decimal({table.rate->message_bytes}));
  if (table.products)
    text +=
        fmt::format("hidden: products of a step take at least {}, at {} GFLOP/s of the slowest rank, measured now\n",
                    core::format_seconds(*table.products), core::format_number(*table.product_gflops));
  return text;
}

}  // namespace

StrategyTable table_of_gpus(const Recipe& recipe, const MemoryNeed& need, int n_ranks, std::uint64_t peak) {
  StrategyTable table{.chosen = recipe.strategy_or_least(), .is_of_gpus = true};
  for (const parallel::Strategy strategy : parallel::strategies_on(true)) {
    Recipe other = recipe;
    other.strategy = strategy;
    StrategyRow row{.strategy = strategy, .need = with_strategy(need, other, n_ranks, 1)};
    row.peak = peak + row.need.of_device() - need.of_device();
    const std::uint64_t gathered = parallel::divides_states(strategy) && need.weights > 0 ? need.weights : need.arena;
    row.sent_bytes = static_cast<std::uint64_t>(n_ranks - 1) * (need.arena + gathered);
    table.rows.push_back(row);
  }
  return table;
}

std::string strategies_text(const StrategyTable& table) {
  std::uint64_t most_memory = 0, most_sent = 0, most_pool = 0, most_parts = 0;
  for (const StrategyRow& row : table.rows) {
    most_memory = std::max(most_memory, row.peak);
    most_sent = std::max(most_sent, row.sent_bytes);
    most_pool = std::max(most_pool, row.need.pool);
    most_parts = std::max(most_parts, row.need.parts);
  }
  const ColumnUnit of_memory = unit_for(most_memory), of_sent = unit_for(most_sent);
  std::vector<core::Column> columns{{.header = "strategy", .align = core::Align::left}};
  const auto add = [&](std::string_view header, std::string_view unit) {
    columns.push_back({.header = std::string{header}, .unit = std::string{unit}, .width = 6});
  };
  add("states", of_memory.name);
  if (most_pool > 0) add("pool", of_memory.name);
  for (const std::string_view header : {"params", "grads"}) add(header, of_memory.name);
  if (most_parts > 0) add("parts", of_memory.name);
  for (const std::string_view header : {"activ.", "peak"}) add(header, of_memory.name);
  add("sent", of_sent.name);
  add("messages", "");
  add("to send", "(ms)");
  add("hidden", "");
  const core::Table lines{std::move(columns)};
  std::string text = lines.header();
  for (const StrategyRow& row : table.rows) {
    std::vector<std::string> cells{fmt::format("{}{}", name(row.strategy), row.strategy == table.chosen ? " *" : "")};
    cells.push_back(number_text(row.need.states, of_memory));
    if (most_pool > 0) cells.push_back(number_text(row.need.pool, of_memory));
    for (const std::uint64_t bytes : {row.need.parameters, row.need.gradients})
      cells.push_back(number_text(bytes, of_memory));
    if (most_parts > 0) cells.push_back(number_text(row.need.parts, of_memory));
    for (const std::uint64_t bytes : {row.need.activations, row.peak}) cells.push_back(number_text(bytes, of_memory));
    cells.push_back(number_text(row.sent_bytes, of_sent));
    cells.push_back(row.n_messages ? fmt::format("{}", *row.n_messages) : "-");
    cells.push_back(to_send_text(row));
    cells.push_back(hidden_text(row, table));
    text += lines.row(cells);
  }
  return text +
         fmt::format("* is this run's. Memory is a rank's{}{}. All ranks together send this in a step.\n",
                     table.is_of_gpus ? "" : " (params: its node's)",
                     most_parts > 0 ? "; parts are its own of parameters and gradients" : "") +
         rates_text(table);
}

}  // namespace lockstep::training
