#include "comm/distance.hpp"

#include <gtest/gtest.h>

#include <atomic>

#include "comm/transport_threads.hpp"

namespace lockstep::comm {
namespace {

// The number of pairs.
int n_pairs(const std::vector<int>& nodes) {
  std::atomic<int> n{0};
  run_as_threads(nodes, [&n](Transport& transport) {
    CoreProbe probe{transport, {8192}};
    for (int i = 0; i < 2; ++i) {
      const auto time = probe.round_trip();
      if (!time) continue;
      EXPECT_GT(time->value, 0);
      ++n;
    }
    for (const std::uint64_t bytes : {1, 64, 100, 8192}) {
      probe.write({bytes});
      probe.read();
    }
  });
  return n / 2;
}

TEST(CoreProbe, MeasuresTheRingOfEachNode) {
  EXPECT_EQ(n_pairs({0}), 0);
  EXPECT_EQ(n_pairs({0, 1}), 0);
  EXPECT_EQ(n_pairs({0, 0}), 1);
  EXPECT_EQ(n_pairs({0, 0, 0}), 3);
  EXPECT_EQ(n_pairs({0, 0, 0, 0}), 4);
  EXPECT_EQ(n_pairs({0, 1, 0, 1, 1}), 4);
}

}  // namespace
}  // namespace lockstep::comm
