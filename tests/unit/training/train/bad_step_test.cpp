#include "training/train/bad_step.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace lockstep::training {
namespace {

TEST(BadStep, ComesBackFromItsText) {
  const BadStep bad{.learning_rate = 1e30,
                    .seen = {{.rank = 1, .host = "a", .where = "conv2", .samples = {7, ~std::uint64_t{0}}},
                             {.rank = 3, .host = "b", .where = "the norm of the gradient"}}};
  const BadStep again = parse_bad_step(to_json(bad));
  EXPECT_EQ(to_json(again), to_json(bad));
  EXPECT_EQ(again.learning_rate, 1e30);
  ASSERT_EQ(again.seen.size(), 2u);
  EXPECT_EQ(again.seen[0].samples, bad.seen[0].samples);
  EXPECT_EQ(again.seen[1].where, "the norm of the gradient");
  EXPECT_THROW(static_cast<void>(parse_bad_step("{}")), core::Error);
}

}  // namespace
}  // namespace lockstep::training
