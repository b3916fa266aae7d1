#include "training/shard/class_counts.hpp"

#include <gtest/gtest.h>

namespace lockstep::training::shard {
namespace {

TEST(ClassCounts, ReadsLabelsOfAnyIntegerType) {
  const std::vector<std::uint8_t> small{1, 255};
  EXPECT_EQ(label_at(core::DType::uint8, std::as_bytes(std::span{small}), 1), 255u);
  const std::vector<std::int64_t> large{7, 1'000'000};
  EXPECT_EQ(label_at(core::DType::int64, std::as_bytes(std::span{large}), 1), 1'000'000u);
}

TEST(ClassCounts, NegativeNumbersAndFloatsAreNoClass) {
  const std::vector<std::int8_t> negative{-1};
  EXPECT_GT(label_at(core::DType::int8, std::as_bytes(std::span{negative}), 0), std::uint64_t{1} << 60);
  const std::vector<float> real{1};
  EXPECT_GT(label_at(core::DType::float32, std::as_bytes(std::span{real}), 0), std::uint64_t{1} << 60);
}

}  // namespace
}  // namespace lockstep::training::shard
