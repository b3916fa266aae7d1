#include "reduce_all/sizes.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace lockstep::reduce_all {
namespace {

std::vector<std::uint64_t> values(const std::vector<std::string>& words, core::DType dtype) {
  const CommandLine line = parse_command_line(words);
  EXPECT_FALSE(line.error.has_value());
  std::vector<std::uint64_t> result;
  for (const comm::Call& call : line.calls)
    if (call.dtype == dtype) result.push_back(call.bytes().value);
  return result;
}

using Values = std::vector<std::uint64_t>;

TEST(Sizes, GrowByTheFactorUpToTheLargest) {
  EXPECT_EQ(values({"-b", "8", "-e", "64"}, core::DType::float32), (Values{8, 16, 32, 64}));
  EXPECT_EQ(values({"-b", "8", "-e", "63"}, core::DType::float32), (Values{8, 16, 32}));
  EXPECT_EQ(values({"-b", "8", "-e", "8"}, core::DType::float32), (Values{8}));
  EXPECT_EQ(values({}, core::DType::float32).size(), 24u);
}

TEST(Sizes, AFractionalFactorStaysOnElementsAndMovesOn) {
  EXPECT_EQ(values({"-b", "8", "-e", "40", "-f", "1.5"}, core::DType::float32), (Values{8, 12, 16, 24, 36}));
  EXPECT_EQ(values({"-b", "4", "-e", "16", "-f", "1.01"}, core::DType::float32), (Values{4, 8, 12, 16}));
}

TEST(Sizes, GrowByTheStep) {
  EXPECT_EQ(values({"-b", "8", "-e", "30", "-i", "8"}, core::DType::float32), (Values{8, 16, 24}));
}

TEST(Sizes, AllTypesRoundUpToWholeElements) {
  const std::vector<std::string> words{"-d", "all", "-b", "1", "-e", "20", "-i", "3"};
  EXPECT_EQ(values(words, core::DType::int8), (Values{1, 4, 7, 10, 13, 16, 19}));
  EXPECT_EQ(values(words, core::DType::float32), (Values{4, 8, 12, 16, 20}));
  EXPECT_EQ(values(words, core::DType::float64), (Values{8, 16, 24}));
  EXPECT_EQ(values({"-d", "all", "-b", "1", "-e", "1"}, core::DType::float64), (Values{8}));
}

TEST(Sizes, TheLargestNumbersDoNotWrapAround) {
  EXPECT_EQ(values({"-d", "int8", "-b", "8E", "-e", "18446744073709551615"}, core::DType::int8),
            (Values{std::uint64_t{1} << 63}));
  EXPECT_EQ(values({"-d", "int8", "-b", "8E", "-e", "18446744073709551615", "-i", "8E"}, core::DType::int8),
            (Values{std::uint64_t{1} << 63}));
}

TEST(Calls, AreEverySizeOfEveryTypeAndOp) {
  const CommandLine line = parse_command_line({"-b", "8", "-e", "16", "-d", "float32,int8", "-o", "sum,max"});
  EXPECT_EQ(line.calls.size(), 8U);
  EXPECT_EQ(line.calls[2].op, comm::ReduceOp::max);
  EXPECT_EQ(line.calls[4].n_elements, 8U);
  EXPECT_EQ(largest_size(line.calls), core::Bytes{16});
}

}  // namespace
}  // namespace lockstep::reduce_all
