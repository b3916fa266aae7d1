#include "data/write/selection.hpp"

#include <gtest/gtest.h>

#include "core/rng.hpp"

namespace lockstep::data {
namespace {

std::vector<std::uint64_t> members(const Selection& selection, std::uint64_t most) {
  std::vector<std::uint64_t> all;
  while (all.size() < selection.n()) {
    const Run run = selection.run_at(all.size(), most);
    EXPECT_GE(run.n, 1);
    EXPECT_LE(run.n, most);
    for (std::uint64_t i = 0; i < run.n; ++i) all.push_back(run.first + i);
  }
  return all;
}

void expect_members(const Selection& selection, const std::vector<std::uint64_t>& expected, std::uint64_t n_source) {
  ASSERT_EQ(selection.n(), expected.size());
  for (const std::uint64_t most : {1, 3, 64, 1000}) EXPECT_EQ(members(selection, most), expected);
  std::uint64_t before = 0;
  for (std::uint64_t i = 0; i < n_source; ++i) {
    const bool is_member = before < expected.size() && expected[before] == i;
    EXPECT_EQ(selection.has(i), is_member) << i;
    EXPECT_EQ(selection.position_of(i), before) << i;
    before += is_member ? 1 : 0;
  }
  EXPECT_FALSE(selection.has(n_source));
}

class Sizes : public testing::TestWithParam<std::uint64_t> {};

TEST_P(Sizes, AllAreSelected) {
  std::vector<std::uint64_t> all;
  for (std::uint64_t i = 0; i < GetParam(); ++i) all.push_back(i);
  expect_members(Selection{GetParam()}, all, GetParam());
}

TEST_P(Sizes, RemovedOnesAreLeftOut) {
  core::Random random{5, GetParam()};
  for (const double share : {0.01, 0.5, 0.99}) {
    std::vector<std::uint64_t> kept, removed;
    for (std::uint64_t i = 0; i < GetParam(); ++i) (random.uniform() < share ? removed : kept).push_back(i);
    Selection selection{GetParam()};
    const std::vector<std::uint64_t> half{removed.begin(), removed.begin() + static_cast<long>(removed.size() / 2)};
    selection.remove(half);
    selection.remove(removed);
    expect_members(selection, kept, GetParam());
  }
}

INSTANTIATE_TEST_SUITE_P(Some, Sizes, testing::Values(0, 1, 63, 64, 65, 511, 512, 513, 2000));

}  // namespace
}  // namespace lockstep::data
