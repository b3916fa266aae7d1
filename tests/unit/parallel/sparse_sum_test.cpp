#include "parallel/sparse_sum.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstring>

#include "comm/registry.hpp"
#include "comm/transport_threads.hpp"
#include "parallel/host_synchronizer.hpp"
#include "unit/parallel/ranks.hpp"

namespace lockstep::parallel {
namespace {

using support::Nodes;
using Rows = std::vector<std::uint64_t>;

struct TableShape {
  std::size_t slot, n_rows, width;
};

// Widths that divide no slice; long enough to be sparse with two owners.
constexpr TableShape wide{1, 1'200, 37}, narrow{3, 700, 19};

std::vector<Slot> slots_with_tables(bool is_sparse) {
  auto slots = support::make_slots({100, wide.n_rows * wide.width, 50, narrow.n_rows * narrow.width, 33});
  for (const TableShape& shape : {wide, narrow}) slots[shape.slot].row_elements = is_sparse ? shape.width : 0;
  return slots;
}

/// Each table in its own bucket, so that several sums run at once; or one bucket of all but the last slot, so that
/// slices hold parts of tables and the gaps between them.
BucketOptions buckets(bool is_one) {
  const std::uint64_t target = is_one ? 1 << 20 : support::small_bucket_bytes;
  return {{target}, {is_one ? target : 256}, {256}};
}

/// The rows that ranks touch in one step.
enum class Pattern { none, few, same, one_rank, random, most, all };
constexpr std::array patterns{Pattern::few,  Pattern::all,      Pattern::none, Pattern::random,
                              Pattern::most, Pattern::one_rank, Pattern::same};

bool is_touched(Pattern pattern, std::size_t row, std::size_t n, int rank, int step) {
  const auto percent = (row + 1) * 2'654'435'761U % 65'537U * static_cast<std::size_t>(rank * 31 + step + 17) % 100;
  switch (pattern) {
    case Pattern::few: return percent == 0;
    case Pattern::same: return row == 3 || row == 4 || row == n - 1;
    case Pattern::one_rank: return rank == 1 && percent < 50;
    case Pattern::random: return percent < 30;
    case Pattern::most: return percent < 98;
    case Pattern::all: return true;
    case Pattern::none: break;
  }
  return false;
}

Rows rows_of(Pattern pattern, const TableShape& shape, int rank, int step) {
  Rows rows;
  for (std::size_t row = 0; row < shape.n_rows; ++row)
    if (is_touched(pattern, row, shape.n_rows, rank, step)) rows.push_back(row);
  return rows;
}

using Value = float (*)(std::size_t element, int rank, int step);

/// The gradient of one rank in one step, given the rows that it touches of each table.
float gradient_at(std::span<const Slot> slots, std::size_t i, Pattern pattern, Value value, int rank, int step) {
  for (const TableShape& shape : {wide, narrow}) {
    const std::size_t from = slots[shape.slot].slice.offset;
    if (i < from || i >= from + slots[shape.slot].slice.count) continue;
    if (!is_touched(pattern, (i - from) / shape.width, shape.n_rows, rank, step)) return 0;
  }
  return value(i, rank, step);
}

struct Setup {
  bool is_sparse = true;
  bool is_one_bucket = false;
  Value value = support::small_integer;
};

/// Parameters of every rank after every step: sums of gradients, with the opposite sign.
using History = std::vector<std::vector<std::vector<float>>>;

void train_tables(comm::Transport& world, const Setup& setup, std::vector<std::vector<float>>& history) {
  const auto slots = slots_with_tables(setup.is_sparse);
  HostSynchronizer synchronizer{world, slots, {.buckets = buckets(setup.is_one_bucket)}};
  synchronizer.start({});
  for (int step = 0; step < static_cast<int>(2 * patterns.size()); ++step) {
    const Pattern pattern = patterns[static_cast<std::size_t>(step) % patterns.size()];
    support::fill(slots, synchronizer.gradients(),
                  [&](std::size_t i) { return gradient_at(slots, i, pattern, setup.value, world.rank(), step); });
    for (const TableShape& shape : {wide, narrow})
      if (setup.is_sparse) synchronizer.touch(shape.slot, rows_of(pattern, shape, world.rank(), step));
    const bool is_early = (step + world.rank()) % 3 != 0;
    for (std::size_t slot = 0; is_early && slot < slots.size(); ++slot) synchronizer.ready(slot);
    synchronizer.step({.learning_rate = 1});
    history.emplace_back(synchronizer.parameters().begin(), synchronizer.parameters().end());
  }
}

History train_on(const Nodes& nodes, const Setup& setup) {
  History history(nodes.size());
  comm::run_as_threads(nodes, [&](comm::Transport& world) {
    train_tables(world, setup, history[static_cast<std::size_t>(world.rank())]);
  });
  return history;
}

/// Returns every rank's parameters after each step, summed over all ranks in double.
std::vector<std::vector<double>> expected_history(std::size_t n_ranks, Value value) {
  const auto slots = slots_with_tables(true);
  std::vector<std::vector<double>> history(2 * patterns.size(), std::vector<double>(arena_elements(slots)));
  for (std::size_t step = 0; step < history.size(); ++step) {
    if (step > 0) history[step] = history[step - 1];
    for (const Slot& slot : slots)
      for (std::size_t i = slot.slice.offset; i < slot.slice.end(); ++i)
        for (int rank = 0; rank < static_cast<int>(n_ranks); ++rank)
          history[step][i] -= static_cast<double>(
              gradient_at(slots, i, patterns[step % patterns.size()], value, rank, static_cast<int>(step)));
  }
  return history;
}

double largest_difference(std::span<const float> a, std::span<const double> b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(static_cast<double>(a[i]) - b[i]));
  return largest;
}

const std::vector<Nodes>& several_nodes() {
  static const std::vector<Nodes> all{{0, 1},          {0, 1, 2},          {0, 0, 1, 1},
                                      {0, 1, 1, 1, 0}, {0, 0, 1, 1, 2, 2}, {0, 1, 2, 2}};
  return all;
}

TEST(SparseSum, IsExactOnEveryRankInEveryStep) {
  for (const Nodes& nodes : several_nodes()) {
    const auto expected = expected_history(nodes.size(), support::small_integer);
    for (const bool is_one_bucket : {false, true}) {
      const History history = train_on(nodes, {.is_one_bucket = is_one_bucket});
      for (std::size_t rank = 0; rank < nodes.size(); ++rank)
        for (std::size_t step = 0; step < expected.size(); ++step)
          ASSERT_EQ(largest_difference(history[rank][step], expected[step]), 0)
              << support::describe(nodes) << ", rank " << rank << ", step " << step << ", one " << is_one_bucket;
    }
  }
}

TEST(SparseSum, GivesAllNodesTheSameBits) {
  for (const Nodes& nodes : several_nodes()) {
    const auto expected = expected_history(nodes.size(), support::odd_value);
    const History history = train_on(nodes, {.value = support::odd_value});
    for (std::size_t step = 0; step < expected.size(); ++step) {
      const auto& first = history[0][step];
      EXPECT_LT(largest_difference(first, expected[step]), 1e-3) << support::describe(nodes) << ", step " << step;
      for (const auto& other : history)
        EXPECT_EQ(std::memcmp(first.data(), other[step].data(), first.size() * sizeof(float)), 0)
            << support::describe(nodes) << ", step " << step;
    }
  }
}

// Two addends have only one order.
TEST(SparseSum, OfTwoNodesHasTheBitsOfADenseSum) {
  for (const Nodes& nodes : {Nodes{0, 1}, Nodes{0, 0, 1, 1}, Nodes{0, 1, 1, 1, 0}}) {
    const auto sparse = train_on(nodes, {.value = support::odd_value}).front().back();
    const auto dense = train_on(nodes, {.is_sparse = false, .value = support::odd_value}).front().back();
    EXPECT_EQ(std::memcmp(sparse.data(), dense.data(), dense.size() * sizeof(float)), 0) << support::describe(nodes);
  }
}

/// A table alone, owned by one rank of each node.
constexpr std::size_t alone_rows = 912, alone_elements = alone_rows * wide.width;

std::vector<Slot> table_alone() {
  auto slots = support::make_slots({alone_elements});
  slots[0].row_elements = wide.width;
  return slots;
}

/// The traffic of one step in which rank r touches touched[r].
comm::Traffic step_traffic(const std::vector<Rows>& touched, const SynchronizerOptions& options) {
  Nodes nodes;
  for (std::size_t r = 0; r < touched.size(); ++r) nodes.push_back(static_cast<int>(r));
  const auto run = [&](int n_steps) {
    return comm::run_as_threads(nodes, [&](comm::Transport& world) {
      HostSynchronizer synchronizer{world, table_alone(), options};
      synchronizer.start({});
      if (n_steps == 0) return;
      synchronizer.touch(0, touched[static_cast<std::size_t>(world.rank())]);
      synchronizer.step({.learning_rate = 1});
    });
  };
  const comm::Traffic before = run(0), after = run(1);
  return {.messages = after.messages - before.messages, .bytes = after.bytes - before.bytes};
}

std::uint64_t dense_bytes(std::string_view algorithm, std::size_t n_nodes, const comm::Call& call) {
  return comm::find_algorithm(algorithm)->all_reduce.cost(call, Nodes(n_nodes)).bytes;
}

/// The bytes of the word by which nodes learn that one halts.
std::uint64_t halt_bytes(std::size_t n_nodes) {
  return dense_bytes("recursive_doubling", n_nodes, {.dtype = core::DType::uint64, .n_elements = 1});
}

/// The bytes of that word, and of the counts of rows.
std::uint64_t count_bytes(std::size_t n_nodes) {
  return halt_bytes(n_nodes) +
         dense_bytes("recursive_doubling", n_nodes, {.dtype = core::DType::uint64, .n_elements = n_nodes});
}

Rows all_but(std::uint64_t missing) {
  Rows rows;
  for (std::uint64_t row = 0; row < alone_rows; ++row)
    if (row != missing) rows.push_back(row);
  return rows;
}

TEST(SparseSum, SendsTheTouchedRows) {
  const std::uint64_t row_bytes = (wide.width + 2) * sizeof(float);
  const std::uint64_t two_rows_bytes = (2 * wide.width + 2) * sizeof(float);  // neighbours
  EXPECT_EQ(step_traffic({{5}, {5, 700, 5}}, {}).bytes, count_bytes(2) + 3 * row_bytes);
  EXPECT_EQ(step_traffic({{5}, {}}, {}).bytes, count_bytes(2) + row_bytes);
  EXPECT_EQ(step_traffic({{}, {}}, {}).bytes, count_bytes(2));
  EXPECT_EQ(step_traffic({{5}, {}, {7, 8, 100}}, {}).bytes, count_bytes(3) + 2 * (2 * row_bytes + two_rows_bytes));
  EXPECT_LT(100 * step_traffic({{5}, {5, 700}}, {}).bytes,
            dense_bytes("rabenseifner", 2, {.n_elements = alone_elements}));
}

TEST(SparseSum, SendsEverythingWhereThatIsFewerBytes) {
  for (const std::size_t n_nodes : {2U, 3U}) {
    const std::uint64_t all =
        dense_bytes(n_nodes == 2 ? "rabenseifner" : "ring", n_nodes, {.n_elements = alone_elements});
    std::vector<Rows> touched{all_but(alone_rows), all_but(alone_rows)};  // each touches all rows
    touched.resize(n_nodes);
    EXPECT_EQ(step_traffic(touched, {}).bytes, count_bytes(n_nodes) + all);
    touched[1] = all_but(80);  // two parts, and a row less: just below
    const std::uint64_t n_words = 2 * alone_elements - wide.width + 6;
    EXPECT_EQ(step_traffic(touched, {}).bytes, count_bytes(n_nodes) + n_words * sizeof(float) * (n_nodes - 1));
    EXPECT_LT(step_traffic(touched, {}).bytes, count_bytes(n_nodes) + all);
  }
}

TEST(SparseSum, ATreeSumsEverything) {
  EXPECT_EQ(step_traffic({{5}, {7}}, {.is_deterministic = true}).bytes,
            halt_bytes(2) + dense_bytes("recursive_doubling", 2, {.n_elements = alone_elements}));
}

TEST(SparseSum, TravelsBeforeTheStep) {
  comm::run_as_threads({0, 1}, [&](comm::Transport& world) {
    const auto slots = slots_with_tables(true);
    HostSynchronizer synchronizer{world, slots, {.buckets = buckets(false)}};
    synchronizer.start({});
    const auto row = synchronizer.gradients().subspan(slots[wide.slot].slice.offset + 3 * wide.width, wide.width);
    row[0] = static_cast<float>(1 + world.rank());
    synchronizer.touch(wide.slot, Rows{3});
    for (std::uint64_t looks = 0; row[0] != 3; ++looks) {  // until the other node's values have been added
      synchronizer.ready(wide.slot);
      world.relax(looks);
    }
    synchronizer.step({.learning_rate = 1});
    EXPECT_EQ(synchronizer.parameters()[slots[wide.slot].slice.offset + 3 * wide.width], -3);
  });
}

TEST(SparseSum, ReadyDoesNotWait) {
  std::atomic<bool> has_been_ready{false};
  const auto body = [&](comm::Transport& world) {
    HostSynchronizer synchronizer{world, table_alone(), {}};
    synchronizer.start({});
    for (std::uint64_t looks = 0; world.rank() == 1 && !has_been_ready; ++looks) world.relax(looks);
    synchronizer.gradients()[0] = 1;
    synchronizer.touch(0, Rows{0});
    synchronizer.ready(0);
    has_been_ready = true;
    synchronizer.step({.learning_rate = 1});
    EXPECT_EQ(synchronizer.parameters()[0], -2);
  };
  comm::run_as_threads({0, 1}, body, core::Seconds{5});
}

}  // namespace
}  // namespace lockstep::parallel
