// Sums of squares, hashes and casts of arenas.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "core/sum_hash.hpp"
#include "optim/cuda/arena.hpp"
#include "optim_arrays.hpp"
#include "support/test_device.hpp"

namespace lockstep::optim::cuda {
namespace {

using runtime::kernel::ThreadOrder;

constexpr std::array all_orders{ThreadOrder::ascending, ThreadOrder::descending, ThreadOrder::shuffled};

/// A small tensor, one of more than two pieces with a short end, an empty one, and the smallest, with gaps between.
const std::vector<Segment> summed_segments{
    {{16, 48}, true}, {{80, 20'016}, false}, {{20'112, 0}, true}, {{20'112, 16}, true}};
constexpr std::size_t n_summed = 20'144;

/// One number per piece, and their sums per range.
template <class Number>
struct Summed {
  std::vector<Number> partials{};
  std::vector<Number> totals{};
  std::vector<std::string> complaints{};
};

/// `compute(stream, values, pieces, partials)`: one number per piece.
template <class Number, class T, class Compute>
Summed<Number> sum_pieces(const std::vector<T>& values, ThreadOrder order, const Compute& compute) {
  const test::TestDevice device{order};
  runtime::Stream stream;
  const Cut tables = cut(summed_segments);
  const OnDevice<BlockPiece> pieces{stream, tables.pieces};
  const OnDevice<PieceRange> ranges{stream, tables.ranges};
  const OnDevice<T> array{stream, values};
  const OnDevice<Number> partials{tables.pieces.size()};
  const OnDevice<Number> totals{tables.ranges.size()};
  compute(stream, DeviceSpan<const T>{array.span()}, pieces.span(), partials.span());
  add_up(stream, DeviceSpan<const Number>{partials.span()}, ranges.span(), totals.span());
  return {partials.read(stream), totals.read(stream), device.complaints()};
}

template <class T>
Summed<double> sum_on_device(const std::vector<T>& values, ThreadOrder order) {
  return sum_pieces<double>(values, order, [](auto&&... arguments) { squared_norms(arguments...); });
}

long double sum_plainly(const std::vector<float>& values, const core::Slice& slice) {
  long double sum = 0;
  for (std::size_t i = slice.offset; i < slice.end(); ++i) sum += static_cast<long double>(values[i]) * values[i];
  return sum;
}

template <class T>
void expect_sums(float times) {
  const std::vector<T> values = rounded<T>(Values{5}.take(n_summed, times));
  const Summed<double> first = sum_on_device(values, ThreadOrder::ascending);
  for (std::size_t i = 0; i < summed_segments.size(); ++i) {
    const auto expected = static_cast<double>(sum_plainly(widened(values), summed_segments[i].slice));
    // n additions of positive numbers, each rounded by at most half a unit of double, n < 2^7 in any chain.
    EXPECT_NEAR(first.totals[i], expected, expected * 0x1p-46) << i;
  }
  for (const ThreadOrder order : all_orders) {
    const Summed<double> again = sum_on_device(values, order);
    EXPECT_TRUE(same_bits(again.totals, first.totals));
    EXPECT_TRUE(again.complaints.empty()) << again.complaints.front();
  }
}

TEST(SquaredNorms, AreThoseOfEachRange) {
  expect_sums<float>(1);
  expect_sums<core::bfloat16>(1);
  expect_sums<core::float16>(1);
}

TEST(SquaredNorms, HoldTheSquaresOfAnyFloat) {
  expect_sums<float>(std::numeric_limits<float>::max());
  expect_sums<float>(1e-40F);
}

TEST(SquaredNorms, AreNotFiniteWhereAnElementIsNot) {
  for (const float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()}) {
    for (const std::size_t at : {std::size_t{80}, std::size_t{20'095}, std::size_t{9999}}) {
      std::vector<float> values = Values{5}.take(n_summed);
      values[at] = bad;
      values[70] = bad;  // in a gap, so in no range
      for (const bool is_finite :
           {sum_on_device(values, ThreadOrder::shuffled).totals[1] < HUGE_VAL,
            sum_on_device(rounded<core::float16>(values), ThreadOrder::shuffled).totals[1] < HUGE_VAL,
            sum_on_device(rounded<core::bfloat16>(values), ThreadOrder::shuffled).totals[1] < HUGE_VAL})
        EXPECT_FALSE(is_finite) << bad << " at " << at;
      EXPECT_TRUE(std::isfinite(sum_on_device(values, ThreadOrder::shuffled).totals[0]));
    }
  }
}

/// By range, and as the sum over all pieces.
std::vector<std::uint64_t> hash_on_device(const std::vector<float>& values, ThreadOrder order) {
  Summed<std::uint64_t> sums =
      sum_pieces<std::uint64_t>(values, order, [](auto&&... arguments) { hash_pieces(arguments...); });
  std::vector<std::uint64_t> hashes = std::move(sums.totals);
  hashes.push_back(std::accumulate(sums.partials.begin(), sums.partials.end(), std::uint64_t{0}));
  for (const std::string& complaint : sums.complaints) ADD_FAILURE() << complaint;
  return hashes;
}

std::vector<std::uint64_t> hash_plainly(const std::vector<float>& values) {
  std::vector<std::uint64_t> hashes;
  std::uint64_t sum = 0;
  for (const Segment& segment : summed_segments) {
    hashes.push_back(core::sum_hash(segment.slice.offset, segment.slice.of(std::span{values})));
    sum += hashes.back();
  }
  hashes.push_back(sum);
  return hashes;
}

TEST(HashPieces, GiveTheHostsHashOfEachRange) {
  std::vector<float> values = Values{5}.take(n_summed);
  values[16] = -0.0F;
  values[100] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::uint64_t> expected = hash_plainly(values);
  EXPECT_EQ(expected[2], 0U) << "nothing";
  EXPECT_NE(expected[1], 0U);
  for (const ThreadOrder order : all_orders) EXPECT_EQ(hash_on_device(values, order), expected);
}

// Only the hash of the range changes, and none for a gap.
TEST(HashPieces, ChangeWithOneBitOrASwap) {
  const std::vector<float> values = Values{5}.take(n_summed);
  const std::vector<std::uint64_t> expected = hash_on_device(values, ThreadOrder::shuffled);
  struct Change {
    std::size_t from, to;  ///< elements that are swapped; equal: a bit of it is flipped
    std::size_t range;     ///< in which they are; summed_segments.size(): in none
  };
  for (const Change& change :
       {Change{16, 16, 0}, Change{63, 63, 0}, Change{80, 80, 1}, Change{20'095, 20'095, 1},
        Change{80 + piece_elements, 80 + piece_elements, 1}, Change{20'112, 20'112, 3}, Change{80, 81, 1},
        Change{80, 80 + piece_elements, 1}, Change{17, 40, 0}, Change{70, 70, 4}, Change{0, 15, 4}}) {
    std::vector<float> changed = values;
    if (change.from == change.to)
      changed[change.from] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(changed[change.from]) ^ 1U);
    else
      std::swap(changed[change.from], changed[change.to]);
    const std::vector<std::uint64_t> found = hash_on_device(changed, ThreadOrder::shuffled);
    for (std::size_t i = 0; i < summed_segments.size(); ++i)
      EXPECT_EQ(found[i] != expected[i], i == change.range) << change.from << ", " << change.to << ": range " << i;
  }
}

TEST(Cut, DependsOnTheSegmentsAlone) {
  const Cut tables = cut(summed_segments);
  ASSERT_EQ(tables.pieces.size(), 5U);
  EXPECT_EQ(tables.pieces[2].offset, 80 + piece_elements);
  EXPECT_EQ(tables.pieces[3].n, 20'016 - 2 * piece_elements);
  EXPECT_EQ(tables.pieces[4].range, 3U);
  EXPECT_EQ(tables.ranges[2].n_pieces, 0U);
  EXPECT_FALSE(tables.ranges[1].decays);
  EXPECT_ANY_THROW(static_cast<void>(cut(std::vector<Segment>{{{8, 16}, true}})));
  EXPECT_ANY_THROW(static_cast<void>(cut(std::vector<Segment>{{{16, 24}, true}})));
  EXPECT_ANY_THROW(static_cast<void>(cut(std::vector<Segment>{{{most_elements, 16}, true}})));
}

template <class To>
void expect_cast(const std::vector<float>& values) {
  const test::TestDevice device;
  runtime::Stream stream;
  const OnDevice<float> source{stream, values};
  const OnDevice<To> target{values.size()};
  cast(stream, source.span(), target.span());
  EXPECT_TRUE(same_bits(target.read(stream), rounded<To>(values)));
  EXPECT_TRUE(device.complaints().empty());
}

TEST(Cast, RoundsOnceToEven) {
  std::vector<float> values = Values{7}.take(4992);
  // Halfway cases, the largest numbers, subnormal numbers, infinity and NaN.
  for (const float value : {1.00390625F, 1.01171875F, 65519.0F, 65520.0F, 3.4e38F, 6e-8F, 3e-8F, 1e-40F, -0.0F,
                            std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(), 0.1F,
                            1.0004883F, 1.0014648F, -65504.0F, 2.0F})
    values.push_back(value);
  expect_cast<core::bfloat16>(values);
  expect_cast<core::float16>(values);
}

TEST(Cast, RefusesArenasOfOtherSizes) {
  runtime::Stream stream;
  std::vector<float> from(32);
  std::vector<core::float16> to(16);
  EXPECT_ANY_THROW(
      cast(stream, DeviceSpan<const float>::at(from.data(), 32), DeviceSpan<core::float16>::at(to.data(), 16)));
}

}  // namespace
}  // namespace lockstep::optim::cuda
