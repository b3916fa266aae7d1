#include "checkpoint/box.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <numeric>

namespace lockstep::checkpoint {
namespace {

// A tensor {4, 6, 5}: cut along its first dimension, along its second, between any elements, and whole.
constexpr std::uint64_t n = 4 * 6 * 5;

Box by_first(core::Slice rows) {
  return {.tensor = "t", .shape = {4, 6, 5}, .n_outer = 1, .n_rows = 4, .n_inner = 30, .rows = rows};
}
Box by_second(core::Slice rows) {
  return {.tensor = "t", .shape = {4, 6, 5}, .n_outer = 4, .n_rows = 6, .n_inner = 5, .rows = rows};
}
Box by_element(core::Slice elements) {
  return {.tensor = "t", .shape = {4, 6, 5}, .n_outer = 1, .n_rows = n, .n_inner = 1, .rows = elements};
}

const std::vector<std::vector<Box>>& cuts() {
  static const std::vector<std::vector<Box>> all{{whole("t", {4, 6, 5})},
                                                 {by_first({0, 1}), by_first({1, 2}), by_first({3, 1})},
                                                 {by_second({0, 2}), by_second({2, 4})},
                                                 {by_second({0, 5}), by_second({5, 0}), by_second({5, 1})},
                                                 {by_element({0, n})},
                                                 {by_element({0, 16}), by_element({16, 64}), by_element({80, n - 80})}};
  return all;
}

std::vector<float> values_of(const Box& box) {
  std::vector<float> all(n), values(box.n_elements());
  std::iota(all.begin(), all.end(), 1.f);
  std::size_t i = 0;
  for (std::size_t outer = 0; outer < box.n_outer; ++outer)
    for (std::size_t row = box.rows.offset; row < box.rows.end(); ++row)
      for (std::size_t inner = 0; inner < box.n_inner; ++inner)
        values[i++] = all[(outer * box.n_rows + row) * box.n_inner + inner];
  return values;
}

TEST(CopyCommon, JoinsHoweverTheTensorWasCut) {
  for (const auto& written : cuts())
    for (const auto& wanted : cuts())
      for (const Box& to : wanted) {
        std::vector<float> values(to.n_elements(), -1);
        std::size_t n_copied = 0;
        for (const Box& from : written) n_copied += copy_common(from, values_of(from), to, values);
        EXPECT_EQ(n_copied, to.n_elements());
        EXPECT_EQ(values, values_of(to));
      }
}

// Readers open only what has common elements.
TEST(CountCommon, CountsElementsOfBoth) {
  for (const auto& some : cuts())
    for (const auto& others : cuts())
      for (const Box& a : some)
        for (const Box& b : others) {
          const std::vector<float> of_a = values_of(a), of_b = values_of(b);  // ascending, none twice
          std::vector<float> common;
          std::ranges::set_intersection(of_a, of_b, std::back_inserter(common));
          EXPECT_EQ(count_common(a, b), common.size());
        }
}

TEST(CopyCommon, LeavesAloneWhatIsNotThere) {
  const Box first = by_first({0, 2}), last = by_first({2, 2});
  std::vector<float> values(last.n_elements(), -1);
  EXPECT_EQ(copy_common(first, values_of(first), last, values), 0u);
  EXPECT_EQ(values, std::vector<float>(last.n_elements(), -1));
}

}  // namespace
}  // namespace lockstep::checkpoint
