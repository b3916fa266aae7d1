#include "training/train/strategy_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "unit/training/recipe/fixture.hpp"
#include "unit/training/train/divided.hpp"

namespace lockstep::training {
namespace {

constexpr std::uint64_t mb = 1'000'000;
using parallel::Strategy;

StrategyTable example_table() {
  StrategyTable table{.chosen = Strategy::zero1, .rate = LinkRate{.GBps = 0.5, .message_bytes = 4 * mb}};
  MemoryNeed need{.activations = 800 * mb, .states = 200 * mb, .parameters = 100 * mb, .gradients = 100 * mb};
  table.rows.push_back({.strategy = Strategy::ddp,
                        .need = need,
                        .peak = 1'300 * mb,
                        .sent_bytes = 200 * mb,
                        .n_messages = 24,
                        .to_send = core::Seconds{0.2}});
  need.states = 50 * mb;
  table.rows.push_back({.strategy = Strategy::zero1,
                        .need = need,
                        .peak = 1'150 * mb,
                        .sent_bytes = 200 * mb,
                        .n_messages = 48,
                        .to_send = core::Seconds{0.4}});
  return table;
}

std::vector<std::string> lines_of(const StrategyTable& table) {
  std::vector<std::string> lines;
  std::istringstream text{strategies_text(table)};
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

/// The cells of a row.
std::vector<std::string> cells_of(const std::string& line) {
  std::istringstream text{line};
  std::vector<std::string> cells;
  for (std::string cell; text >> cell;) cells.push_back(cell);
  return cells;
}

TEST(StrategyTable, HasARowForEachStrategyAndMarksTheChosenOne) {
  StrategyTable table = example_table();
  table.product_gflops = 80;
  table.products = core::Seconds{0.3};
  const std::vector<std::string> lines = lines_of(table);
  ASSERT_EQ(lines.size(), 7U);
  using Cells = std::vector<std::string>;
  EXPECT_EQ(cells_of(lines[0]), (Cells{"strategy", "states", "params", "grads", "activ.", "peak", "sent", "messages",
                                       "to", "send", "hidden"}));
  EXPECT_EQ(cells_of(lines[1]), (Cells{"(MB)", "(MB)", "(MB)", "(MB)", "(MB)", "(MB)", "(ms)"}));
  EXPECT_EQ(cells_of(lines[2]), (Cells{"ddp", "200", "100", "100", "800", "1300", "200", "24", "200", "yes"}));
  EXPECT_EQ(cells_of(lines[3]), (Cells{"zero1", "*", "50", "100", "100", "800", "1150", "200", "48", "400", "half"}));
  EXPECT_TRUE(has(lines[5], "at 0.5 GB/s of each rank, measured now by an all-reduce of 4 MB"));
  EXPECT_TRUE(has(lines[6], "at least 300 ms, at 80 GFLOP/s"));
}

TEST(StrategyTable, TellsWhatProductsCanHide) {
  const auto hidden = [](double products, bool is_one_pass) {
    StrategyTable table = example_table();
    table.products = core::Seconds{products};
    table.is_one_pass = is_one_pass;
    const std::vector<std::string> lines = lines_of(table);
    return cells_of(lines[2]).back() + " " + cells_of(lines[3]).back();
  };
  EXPECT_EQ(hidden(0.3, true), "yes half");
  EXPECT_EQ(hidden(0.19, true), "unsure unsure");
  EXPECT_EQ(hidden(0.3, false), "no no");
}

TEST(StrategyTable, ClaimsNothingThatWasNotMeasured) {
  StrategyTable table = example_table();
  table.rate.reset();
  for (StrategyRow& row : table.rows) row.to_send.reset();
  const std::vector<std::string> lines = lines_of(table);
  EXPECT_EQ(cells_of(lines[2]).back(), "?");
  EXPECT_TRUE(has(lines.back(), "to send: not measured; reduce_all ")) << lines.back();
  for (StrategyRow& row : table.rows) row.sent_bytes = 0;
  EXPECT_FALSE(has(strategies_text(table), "measured")) << "nothing is sent";
  EXPECT_EQ(cells_of(lines_of(table)[2]).back(), "-");
}

TEST(StrategyTable, FitsOnAScreen) {
  StrategyTable table = example_table();
  table.product_gflops = 123.456;
  table.products = core::Seconds{0.123456};
  for (StrategyRow& row : table.rows) {
    row.need.pool = 123'456 * mb;
    row.peak = 1'234'567 * mb;
    row.sent_bytes = 7'654'321 * mb;
    row.n_messages = 12'345'678;
    row.to_send = core::Seconds{12.3456};
  }
  const std::vector<std::string> lines = lines_of(table);
  for (const std::string& line : lines) EXPECT_LE(line.size(), 100U) << line;
  EXPECT_TRUE(has(lines[0], "states    pool  params")) << lines[0];
  EXPECT_TRUE(has(lines[1], "(GB)"));
  EXPECT_FALSE(has(lines[1], "(MB)"));
  table.rate.reset();
  for (const std::string& line : lines_of(table)) EXPECT_LE(line.size(), 100U) << line;
}

TEST(StrategyTable, OfGpusHasThoseThatExistThere) {
  const Recipe recipe{.device = {.has_own_memory = true}};
  const MemoryNeed need =
      with_strategy({.activations = 10 * mb, .arena = 4 * mb, .kept = divided(4 * mb)}, recipe, 4, 1);
  const StrategyTable table = table_of_gpus(recipe, need, 4, 30 * mb);
  ASSERT_EQ(table.rows.size(), parallel::strategies_on(true).size());
  EXPECT_EQ(table.rows[0].strategy, Strategy::ddp);
  EXPECT_EQ(table.rows[0].peak, 30 * mb);
  EXPECT_EQ(table.rows[0].sent_bytes, 3 * 2 * 4 * mb) << "a ring: each rank sends 2 (N - 1) / N of the gradients";
  EXPECT_FALSE(table.rows[0].n_messages);
  EXPECT_EQ(table_of_gpus(recipe, need, 1, 30 * mb).rows[0].sent_bytes, 0U);
}

}  // namespace
}  // namespace lockstep::training
