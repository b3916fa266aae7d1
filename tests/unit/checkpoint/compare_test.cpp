#include "checkpoint/compare.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "checkpoint/writer.hpp"
#include "unit/io/temporary_folder.hpp"

namespace lockstep::checkpoint {
namespace {

using io::TemporaryFolder;

const std::vector<Box> compared{whole("parameter/a", {2, 3}), whole("parameter/b", {2})};

/// A checkpoint with these values as its first tensor, and 1 and 2 as its second.
Checkpoint make(const std::string& path, const std::vector<float>& a, const std::vector<Box>& of = compared) {
  const auto fill = [&](std::size_t i, std::span<float> values) {
    const std::vector<float> b{1, 2};
    std::ranges::copy(i == 0 ? a : b, values.begin());
  };
  std::optional<RankFile> file;
  write_checkpoint(runtime::Communicator::alone(), path, "{}", of, fill, file);
  return Checkpoint{path};
}

TEST(Compare, EqualIsEqualToTheBit) {
  const TemporaryFolder folder;
  const std::vector<float> values{1, 2, std::numeric_limits<float>::quiet_NaN(), -0.0F, 1e-45F, INFINITY};
  const Comparison same = compare(make(folder / "a", values), make(folder / "b", values));
  EXPECT_EQ(same.n_equal, 2u);
  EXPECT_EQ(same.n_differing, 0u);
  EXPECT_EQ(same.first, "");
}

TEST(Compare, ASingleBitIsNamed) {
  const TemporaryFolder folder;
  const Checkpoint first = make(folder / "a", {1, 2, 3, 4, 5, 6});
  const Comparison one =
      compare(first, make(folder / "b", {1, 2, 3, 4, std::nextafter(5.0F, 6.0F), std::nextafter(6.0F, 0.0F)}));
  EXPECT_EQ(one.n_equal, 1u);
  EXPECT_EQ(one.n_differing, 1u);
  EXPECT_EQ(one.first, "parameter/a [1, 1]: 5 and 5.00000048, 1 ULP apart; 2 of 6 elements differ, by 1 ULP at most");
  const Comparison zero = compare(make(folder / "c", {0, 0, 0, 0, 0, 0}), make(folder / "d", {0, 0, -0.0F, 0, 0, 0}));
  EXPECT_EQ(zero.n_differing, 1u);
  EXPECT_EQ(zero.first, "parameter/a [0, 2]: 0 and -0, 1 ULP apart; 1 of 6 elements differ, by 1 ULP at most");
}

TEST(Compare, WhatOnlyOneHasIsNamed) {
  const TemporaryFolder folder;
  const Checkpoint first = make(folder / "a", {1, 2, 3, 4, 5, 6});
  const Checkpoint less = make(folder / "b", {1, 2, 3, 4, 5, 6}, {compared.front()});
  EXPECT_EQ(compare(first, less).first, "parameter/b: only in " + (folder / "a"));
  EXPECT_EQ(compare(less, first).first, "parameter/b: only in " + (folder / "a"));
  const Checkpoint other = make(folder / "c", {1, 2, 3, 4, 5, 6}, {whole("parameter/a", {3, 2}), compared.back()});
  const Comparison shapes = compare(first, other);
  EXPECT_EQ(shapes.first, "parameter/a: of different shapes");
  EXPECT_EQ(shapes.n_equal, 1u);
}

}  // namespace
}  // namespace lockstep::checkpoint
