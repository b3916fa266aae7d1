#include "reduce_all/verify.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <type_traits>

#include "core/dtype.hpp"

namespace lockstep::reduce_all {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::uint64_t seed = 7;

comm::Call make_call(core::DType dtype, comm::ReduceOp op, std::size_t n,
                     comm::Collective collective = comm::Collective::all_reduce) {
  return {collective, dtype, op, n};
}

Bytes input_of(const comm::Call& call, int rank, int n_ranks) {
  Bytes input(call.input(rank, n_ranks).count * call.element_size());
  TestData{call, rank, n_ranks, seed}.fill(input);
  return input;
}

struct Reduced {
  Bytes output;
  bool is_exact = true;  ///< no partial result was rounded or left the range of the type
};

// One step of the reduction, in the type's own arithmetic but checked in a wider one.
template <class T>
T combine(comm::ReduceOp op, T a, T b, bool& is_exact) {
  using Wide = std::conditional_t<std::is_integral_v<T>, std::int64_t, double>;
  const auto widen = [](T value) {
    if constexpr (std::is_arithmetic_v<T>)
      return static_cast<Wide>(value);
    else
      return static_cast<Wide>(static_cast<float>(value));
  };
  const Wide x = widen(a);
  const Wide y = widen(b);
  Wide result = x + y;
  if (op == comm::ReduceOp::prod) result = x * y;
  if (op == comm::ReduceOp::min) result = std::min(x, y);
  if (op == comm::ReduceOp::max) result = std::max(x, y);
  T narrow{};
  if constexpr (std::is_arithmetic_v<T>)
    narrow = static_cast<T>(result);
  else
    narrow = static_cast<T>(static_cast<float>(result));
  is_exact = is_exact && widen(narrow) == result;
  return narrow;
}

template <class T>
T finish(comm::ReduceOp op, T sum, int n_ranks) {
  if (op != comm::ReduceOp::avg) return sum;
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::int64_t>(sum) / n_ranks);
  else if constexpr (std::is_same_v<T, double>)
    return sum / n_ranks;
  else
    return static_cast<T>(static_cast<float>(sum) / static_cast<float>(n_ranks));
}

// Reduces `inputs` in their order, by brute force.
Reduced reduce(const comm::Call& call, const std::vector<Bytes>& inputs, int divisor) {
  return core::visit(call.dtype, [&]<class T>(std::type_identity<T>) {
    Reduced reduced{Bytes(call.n_elements * sizeof(T))};
    for (std::size_t i = 0; i < call.n_elements; ++i) {
      T sum{};
      for (std::size_t r = 0; r < inputs.size(); ++r) {
        T value{};
        std::memcpy(static_cast<void*>(&value), &inputs[r][i * sizeof(T)], sizeof(T));
        sum = r == 0 ? value : combine(call.op, sum, value, reduced.is_exact);
      }
      sum = finish(call.op, sum, divisor);
      std::memcpy(&reduced.output[i * sizeof(T)], &sum, sizeof(T));
    }
    return reduced;
  });
}

std::vector<Bytes> all_inputs(const comm::Call& call, int n_ranks) {
  std::vector<Bytes> inputs;
  for (int rank = 0; rank < n_ranks; ++rank) inputs.push_back(input_of(call, rank, n_ranks));
  return inputs;
}

std::uint64_t n_wrong(const comm::Call& call, const Bytes& output, int n_ranks, int rank = 0) {
  return TestData{call, rank, n_ranks, seed}.check(output).n_wrong;
}

// A sum that fits 8 bits is less than 130, so its average over 130 ranks is always 0.
bool is_averaged_away(core::DType dtype, comm::ReduceOp op, int n_ranks) {
  return op == comm::ReduceOp::avg && !core::is_floating(dtype) && core::size_of(dtype) == 1 && n_ranks == 130;
}

class Verify : public testing::TestWithParam<core::DType> {};

TEST_P(Verify, TheOracleAgreesWithBruteForceInAnyOrder) {
  std::vector<int> rank_counts(40);
  std::iota(rank_counts.begin(), rank_counts.end(), 1);
  rank_counts.push_back(130);
  rank_counts.push_back(1000);
  for (const comm::ReduceOp op : comm::all_reduce_ops) {
    for (const int n_ranks : rank_counts) {
      const comm::Call call = make_call(GetParam(), op, 60);
      std::vector<Bytes> inputs = all_inputs(call, n_ranks);
      for (int order = 0; order < 2; ++order) {
        const Reduced reduced = reduce(call, inputs, n_ranks);
        EXPECT_TRUE(reduced.is_exact) << comm::name(op) << ' ' << n_ranks;
        EXPECT_EQ(n_wrong(call, reduced.output, n_ranks), 0u) << comm::name(op) << ' ' << n_ranks;
        std::reverse(inputs.begin(), inputs.end());
      }
    }
  }
}

TEST_P(Verify, TheOracleHoldsBeyondOnePeriodOfTheData) {
  const comm::Call call = make_call(GetParam(), comm::ReduceOp::sum, 2 * TestData::period + 77);
  EXPECT_EQ(n_wrong(call, reduce(call, all_inputs(call, 3), 3).output, 3), 0u);
}

TEST_P(Verify, EveryElementOfAStaleOutputIsWrong) {
  for (const comm::ReduceOp op : comm::all_reduce_ops) {
    const comm::Call call = make_call(GetParam(), op, 500);
    Bytes output(call.bytes().value);
    TestData{call, 0, 4, seed}.poison(output);
    EXPECT_EQ(n_wrong(call, output, 4), call.n_elements) << comm::name(op);
  }
}

// Faults of an all-reduce, each made by reducing the wrong inputs.
TEST_P(Verify, SeesAMissingRank) {
  for (const comm::ReduceOp op : comm::all_reduce_ops) {
    for (const int n_ranks : {2, 5, 130}) {
      if (is_averaged_away(GetParam(), op, n_ranks)) continue;
      const comm::Call call = make_call(GetParam(), op, 2000);
      std::vector<Bytes> inputs = all_inputs(call, n_ranks);
      inputs.erase(inputs.begin() + n_ranks / 2);
      EXPECT_GT(n_wrong(call, reduce(call, inputs, n_ranks).output, n_ranks), 0u) << comm::name(op) << ' ' << n_ranks;
    }
  }
}

TEST_P(Verify, SeesARankCountedTwiceInsteadOfAnother) {
  for (const comm::ReduceOp op : comm::all_reduce_ops) {
    for (const int n_ranks : {2, 5, 130}) {
      if (is_averaged_away(GetParam(), op, n_ranks)) continue;
      const comm::Call call = make_call(GetParam(), op, 2000);
      std::vector<Bytes> inputs = all_inputs(call, n_ranks);
      inputs.front() = inputs.back();
      EXPECT_GT(n_wrong(call, reduce(call, inputs, n_ranks).output, n_ranks), 0u) << comm::name(op) << ' ' << n_ranks;
    }
  }
}

TEST_P(Verify, SeesARankCountedOnceTooOften) {
  for (const comm::ReduceOp op :
       {comm::ReduceOp::sum, comm::ReduceOp::prod, comm::ReduceOp::avg}) {  // harmless to min, max
    for (const int n_ranks : {2, 5, 130}) {
      if (is_averaged_away(GetParam(), op, n_ranks)) continue;
      const comm::Call call = make_call(GetParam(), op, 2000);
      std::vector<Bytes> inputs = all_inputs(call, n_ranks);
      inputs.push_back(inputs.front());
      EXPECT_GT(n_wrong(call, reduce(call, inputs, n_ranks).output, n_ranks), 0u) << comm::name(op) << ' ' << n_ranks;
    }
  }
}

TEST_P(Verify, SeesAShiftedChunk) {
  for (const comm::ReduceOp op : comm::all_reduce_ops) {
    const comm::Call call = make_call(GetParam(), op, 40000);
    const Bytes good = reduce(call, all_inputs(call, 3), 3).output;
    for (const std::size_t shift : {1, 2, 64, 1024, 4096, 8192, 16384}) {
      Bytes output = good;
      const std::size_t size = call.element_size();
      std::memcpy(&output[0], &good[shift * size], 256 * size);
      EXPECT_GT(n_wrong(call, output, 3), 0u) << comm::name(op) << ' ' << shift;
    }
  }
}

TEST_P(Verify, ScatteredAndGatheredPartsAreCheckedWhereTheyBelong) {
  constexpr int n_ranks = 3;
  const comm::Call whole = make_call(GetParam(), comm::ReduceOp::sum, 1000);
  const comm::Call scatter = make_call(GetParam(), comm::ReduceOp::sum, 1000, comm::Collective::reduce_scatter);
  const comm::Call gather = make_call(GetParam(), comm::ReduceOp::sum, 1000, comm::Collective::all_gather);
  const Bytes sum = reduce(whole, all_inputs(whole, n_ranks), n_ranks).output;
  const std::size_t size = whole.element_size();
  Bytes gathered;
  for (int rank = 0; rank < n_ranks; ++rank) {
    const core::Slice part = whole.part(rank, n_ranks);
    const auto cut = [&](const core::Slice& s) {
      return Bytes(sum.begin() + static_cast<long>(s.offset * size),
                   sum.begin() + static_cast<long>((s.offset + s.count) * size));
    };
    EXPECT_EQ(n_wrong(scatter, cut(part), n_ranks, rank), 0u);
    const core::Slice other = whole.part((rank + 1) % n_ranks, n_ranks);
    EXPECT_GT(n_wrong(scatter, cut({other.offset, std::min(part.count, other.count)}), n_ranks, rank), 0u);
    const Bytes mine = input_of(gather, rank, n_ranks);
    gathered.insert(gathered.end(), mine.begin(), mine.end());
  }
  for (int rank = 0; rank < n_ranks; ++rank) EXPECT_EQ(n_wrong(gather, gathered, n_ranks, rank), 0u);
  const std::size_t part_bytes = whole.part(1, n_ranks).count * size;
  const std::size_t offset = whole.part(1, n_ranks).offset * size;
  std::swap_ranges(gathered.begin() + static_cast<long>(offset),
                   gathered.begin() + static_cast<long>(offset + part_bytes),
                   gathered.begin() + static_cast<long>(offset + part_bytes));
  EXPECT_GT(n_wrong(gather, gathered, n_ranks), 0u);
}

TEST_P(Verify, MoreRanksThanElementsLeaveSomeWithNothing) {
  const comm::Call gather = make_call(GetParam(), comm::ReduceOp::sum, 2, comm::Collective::all_gather);
  Bytes gathered;
  for (int rank = 0; rank < 5; ++rank) {
    const Bytes mine = input_of(gather, rank, 5);
    gathered.insert(gathered.end(), mine.begin(), mine.end());
  }
  EXPECT_EQ(n_wrong(gather, gathered, 5, 4), 0u);
}

TEST_P(Verify, ReportsTheFirstWrongElementAndCountsAll) {
  const comm::Call call = make_call(GetParam(), comm::ReduceOp::max, TestData::period + 100);
  const Bytes good = reduce(call, all_inputs(call, 2), 2).output;
  Bytes output = good;
  const std::size_t size = call.element_size();
  for (const std::size_t i : {TestData::period + 5, TestData::period + 50, TestData::period + 99})
    output[i * size] ^= std::byte{1};
  const Mismatch mismatch = TestData{call, 0, 2, seed}.check(output);
  EXPECT_EQ(mismatch.n_wrong, 3u);
  EXPECT_EQ(mismatch.index, TestData::period + 5);
  EXPECT_EQ(mismatch.expected ^ mismatch.found, 1u);
}

INSTANTIATE_TEST_SUITE_P(AllTypes, Verify, testing::ValuesIn(core::all_dtypes),
                         [](const auto& test) { return std::string{core::name(test.param)}; });

TEST(VerifyData, DependsOnTheSeed) {
  const comm::Call call = make_call(core::DType::float32, comm::ReduceOp::sum, 100);
  Bytes first(400);
  Bytes second(400);
  TestData{call, 0, 2, 1}.fill(first);
  TestData{call, 0, 2, 2}.fill(second);
  EXPECT_NE(first, second);
}

TEST(VerifyData, AddKeepsTheFirstElement) {
  Mismatch sum;
  sum.add({2, 7, 1, 0});
  sum.add({3, 4, 9, 8});
  EXPECT_EQ(sum.n_wrong, 5u);
  EXPECT_EQ(sum.index, 7u);
}

TEST(VerifyData, ElementsAreShownAsValueAndBits) {
  EXPECT_EQ(format_element(core::DType::float32, 0x3fc00000), "1.5 (0x3fc00000)");
  EXPECT_EQ(format_element(core::DType::int8, 0xff), "-1 (0xff)");
  EXPECT_EQ(format_element(core::DType::bfloat16, 0x4000), "2 (0x4000)");
  EXPECT_EQ(format_element(core::DType::uint64, 5), "5 (0x0000000000000005)");
}

}  // namespace
}  // namespace lockstep::reduce_all
