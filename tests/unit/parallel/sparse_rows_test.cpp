#include "parallel/sparse_rows.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "comm/transport_threads.hpp"
#include "core/error.hpp"
#include "parallel/host_synchronizer.hpp"
#include "unit/parallel/ranks.hpp"

namespace lockstep::parallel {
namespace {

using support::Nodes;

constexpr std::size_t width = 37;  // does not divide a slice
constexpr std::size_t n_rows = 200;
constexpr std::size_t table = 1;  // the slot

std::vector<Slot> make_slots(bool is_sparse) {
  auto slots = support::make_slots({100, n_rows * width, 50});
  if (is_sparse) slots[table].row_elements = width;
  return slots;
}

/// Rows of a rank's samples: some of them twice, the same rows as other ranks', or none.
std::vector<std::uint64_t> rows_of(int rank, int step) {
  std::vector<std::uint64_t> rows;
  if ((rank + step) % 3 == 2) return rows;
  for (std::uint64_t i = 0; i < 12; ++i)
    rows.push_back((i * i * 7 + 40 * static_cast<std::uint64_t>(rank % 2 + step)) % n_rows);
  rows.push_back(n_rows - 1);
  return rows;
}

using RowValue = float (*)(std::size_t element, int rank, int step);

void write_gradients(std::span<const Slot> slots, std::span<float> gradients, RowValue value, int rank, int step) {
  const auto rows = rows_of(rank, step);
  support::fill(slots, gradients, [&](std::size_t i) {
    const bool is_in_table = slots[table].slice.offset <= i && i < slots[table].slice.offset + n_rows * width;
    const std::size_t row = (i - slots[table].slice.offset) / width;
    const bool is_zero = is_in_table && std::find(rows.begin(), rows.end(), row) == rows.end();
    return is_zero ? 0.0F : value(i, rank, step);
  });
}

bool is_table_zero(std::span<const Slot> slots, std::span<const float> gradients) {
  const auto rows = slots[table].slice.of(gradients);
  return std::all_of(rows.begin(), rows.end(), [](float element) { return element == 0; });
}

std::vector<float> train(const Nodes& nodes, RowValue value, bool is_sparse, double clip_norm,
                         bool is_deterministic = false, Strategy strategy = Strategy::ddp) {
  std::vector<float> parameters;
  SynchronizerOptions options{.optimizer = optim::default_spec(optim::OptimizerKind::adamw),
                              .is_deterministic = is_deterministic};
  options.buckets = {{support::small_bucket_bytes}, {256}, {256}};
  comm::run_as_threads(nodes, [&](comm::Transport& world) {
    const auto slots = make_slots(is_sparse);
    HostSynchronizer synchronizer{world, slots, options, strategy};
    synchronizer.start({});
    for (int step = 0; step < 4; ++step) {
      if (is_sparse && step > 0) {
        EXPECT_TRUE(is_table_zero(slots, synchronizer.gradients())) << "step " << step;
      }
      write_gradients(slots, synchronizer.gradients(), value, world.rank(), step);
      if (is_sparse) synchronizer.touch(table, rows_of(world.rank(), step));
      for (std::size_t slot = 0; slot < slots.size(); ++slot) synchronizer.ready(slot);
      synchronizer.step({.learning_rate = 1e-2}, clip_norm);
    }
    if (world.rank() == 0) parameters.assign(synchronizer.parameters().begin(), synchronizer.parameters().end());
  });
  return parameters;
}

// With more than two nodes the order of additions differs, so sums have to be exact.
TEST(SparseRows, ParametersAreThoseOfDenseGradients) {
  for (const Nodes& nodes : support::placements()) {
    const bool is_ordered = *std::max_element(nodes.begin(), nodes.end()) < 2;
    const RowValue value = is_ordered ? support::odd_value : support::small_integer;
    for (const double clip_norm : {0.0, 0.5}) {
      const auto dense = train(nodes, value, false, clip_norm);
      for (const Strategy strategy : all_strategies) {
        const auto sparse = train(nodes, value, true, clip_norm, false, strategy);
        ASSERT_EQ(sparse.size(), dense.size());
        EXPECT_EQ(std::memcmp(sparse.data(), dense.data(), dense.size() * sizeof(float)), 0)
            << support::describe(nodes) << ", " << name(strategy);
      }
    }
  }
}

TEST(SparseRows, AreZeroAfterStepsThatSumInATree) {
  for (const Nodes& nodes : {Nodes{0}, Nodes{0, 0}, Nodes{0, 0, 0, 0}, Nodes{0, 0, 1, 1}})
    for (const Strategy strategy : all_strategies)
      EXPECT_EQ(train(nodes, support::odd_value, true, 0, true, strategy),
                train(nodes, support::odd_value, false, 0, true))
          << support::describe(nodes) << ", " << name(strategy);
}

TEST(SparseRows, OnlyTouchedRowsAreRead) {
  comm::run_as_threads({0, 0}, [](comm::Transport& world) {
    const auto slots = make_slots(true);
    HostSynchronizer synchronizer{world, slots, {}};
    synchronizer.start({});
    const auto row_begin = [&](std::size_t row) { return slots[table].slice.offset + row * width; };
    for (int step = 0; step < 2; ++step) {  // marks end with the step
      const std::uint64_t touched = step == 0 ? 3 : 90;
      std::fill(synchronizer.gradients().begin(), synchronizer.gradients().end(), 0.0F);
      if (world.rank() == 1) {
        synchronizer.gradients()[row_begin(3)] = 1;
        synchronizer.gradients()[row_begin(90) + width - 1] = 1;
        synchronizer.touch(table, std::vector<std::uint64_t>{touched, touched});
      }
      synchronizer.step({.learning_rate = 1});
    }
    EXPECT_EQ(synchronizer.parameters()[row_begin(3)], -1);
    EXPECT_EQ(synchronizer.parameters()[row_begin(90) + width - 1], -1);
  });
}

TEST(SparseRows, PartsAreTouchedRowsAndOtherSlots) {
  comm::run_as_threads({0, 0}, [](comm::Transport& node) {
    const auto slots = make_slots(true);
    SparseRows rows{node, slots};
    EXPECT_TRUE(rows.has_rows({0, 200}));
    EXPECT_FALSE(rows.has_rows({0, slots[table].slice.offset}));
    EXPECT_FALSE(rows.has_rows({150, 0}));
    EXPECT_TRUE(rows.has_rows({slots[table].slice.offset, 1}));
    rows.touch(table, node.rank() == 0 ? std::vector<std::uint64_t>{64, 2, 2} : std::vector<std::uint64_t>{3, 199});
    const auto both = node.share(1);  // a meeting: all marks are there
    std::vector<core::Slice> parts;
    const std::size_t begin = slots[table].slice.offset;
    const core::Slice slice{90, begin + 65 * width - 10 - 90};  // ends within row 64
    rows.find_touched(slice, parts);
    ASSERT_EQ(parts.size(), 3U);
    EXPECT_EQ(parts[0].offset, 90U);
    EXPECT_EQ(parts[0].count, 10U);
    EXPECT_EQ(parts[1].offset, begin + 2 * width);
    EXPECT_EQ(parts[1].count, 2 * width);
    EXPECT_EQ(parts[2].offset, begin + 64 * width);
    EXPECT_EQ(parts[2].count, width - 10);
    EXPECT_GE(rows.most_parts(slice), parts.size());
    rows.find_touched({begin + 64 * width, 1}, parts);
    ASSERT_EQ(parts.size(), 1U);
    EXPECT_EQ(parts[0].count, 1U);
    EXPECT_THROW(rows.touch(table, std::vector<std::uint64_t>{n_rows}), core::Error);
    EXPECT_THROW(rows.touch(0, std::vector<std::uint64_t>{0}), core::Error);
  });
}

TEST(SparseRows, EveryOtherRowMakesTheMostParts) {
  comm::run_as_threads({0}, [](comm::Transport& node) {
    const auto slots = make_slots(true);
    SparseRows rows{node, slots};
    std::vector<std::uint64_t> touched;
    for (std::uint64_t row = 1; row < n_rows; row += 2) touched.push_back(row);
    rows.touch(table, touched);
    for (const std::size_t n_elements :
         {slots[2].slice.offset + 50, slots[1].slice.offset + 10 * width, slots[0].slice.offset + 7}) {
      std::vector<core::Slice> parts;
      parts.reserve(rows.most_parts({3, n_elements - 3}));
      const auto* const memory = parts.data();
      rows.find_touched({3, n_elements - 3}, parts);
      EXPECT_EQ(parts.data(), memory);
    }
    EXPECT_LE(rows.most_parts({3, slots[2].slice.offset}), n_rows / 2 + 3);
  });
}

}  // namespace
}  // namespace lockstep::parallel
