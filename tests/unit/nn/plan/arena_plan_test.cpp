#include "nn/plan/arena_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/rng.hpp"

namespace lockstep::nn {
namespace {

bool lives(const Lifetime& buffer, int time) {
  if (buffer.is_forgotten) return time == buffer.first || time == buffer.last;
  return buffer.first <= time && time <= buffer.last;
}

bool overlap(const Lifetime& a, std::size_t at_a, const Lifetime& b, std::size_t at_b) {
  bool live_together = false;
  for (int time = 0; time < 110; ++time) live_together = live_together || (lives(a, time) && lives(b, time));
  return live_together && at_a < at_b + b.n_bytes && at_b < at_a + a.n_bytes;
}

TEST(ArenaPlan, KeepsApartWhatLivesTogether) {
  core::Random random{5};
  for (int round = 0; round < 50; ++round) {
    std::vector<Lifetime> buffers(60);
    std::size_t total = 0;
    for (Lifetime& buffer : buffers) {
      buffer.n_bytes = 1 + random.below(5000);
      buffer.first = static_cast<int>(random.below(100));
      buffer.last = buffer.first + static_cast<int>(random.below(10));
      buffer.is_forgotten = random.below(4) == 0;
      total += buffer.n_bytes;
    }
    const ArenaPlan plan = plan_arena(buffers, 64);
    std::size_t most = 0;
    for (int time = 0; time < 110; ++time) {
      std::size_t alive = 0;
      for (const Lifetime& buffer : buffers)
        if (lives(buffer, time)) alive += buffer.n_bytes;
      most = std::max(most, alive);
    }
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      EXPECT_EQ(plan.offsets[i] % 64, 0u);
      EXPECT_LE(plan.offsets[i] + buffers[i].n_bytes, plan.n_bytes);
      for (std::size_t k = 0; k < i; ++k)
        EXPECT_FALSE(overlap(buffers[i], plan.offsets[i], buffers[k], plan.offsets[k]));
    }
    EXPECT_GE(plan.n_bytes, most);
    EXPECT_LT(plan.n_bytes, total / 2);
  }
}

TEST(ArenaPlan, SharesAPlaceBetweenBuffersOfDifferentTimes) {
  const std::vector<Lifetime> buffers{{640, 0, 1}, {640, 2, 3}, {64, 1, 2}, {0, 0, 3}, {640}};
  EXPECT_EQ(plan_arena(buffers, 64).n_bytes, 704u);
  EXPECT_EQ(plan_arena({}, 64).n_bytes, 0u);
  const std::vector<Lifetime> forgotten{{640, 0, 3, true}, {640, 1, 2}, {640, 1, 2, true}};
  EXPECT_EQ(plan_arena(forgotten, 64).n_bytes, 1280u);
}

}  // namespace
}  // namespace lockstep::nn
