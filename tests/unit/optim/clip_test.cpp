#include "optim/clip.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace lockstep::optim {
namespace {

TEST(ClipFactor, BringsTheNormDown) {
  EXPECT_DOUBLE_EQ(clip_factor(4, 1), 1 / (4 + 1e-6));
  EXPECT_DOUBLE_EQ(clip_factor(1e-3, 1e-6), 1e-6 / (1e-3 + 1e-6));
}

TEST(ClipFactor, NeverMakesGradientsLarger) {
  EXPECT_EQ(clip_factor(0.5, 1), 1);
  EXPECT_EQ(clip_factor(0, 1), 1);
}

TEST(ClipFactor, KeepsDivergenceVisible) {
  EXPECT_TRUE(std::isnan(clip_factor(std::numeric_limits<double>::quiet_NaN(), 1)));
  EXPECT_EQ(clip_factor(std::numeric_limits<double>::infinity(), 1), 0);
}

}  // namespace
}  // namespace lockstep::optim
