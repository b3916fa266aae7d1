#include "parallel/group_sum.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "comm/transport_threads.hpp"

namespace lockstep::parallel {
namespace {

TEST(GroupSum, IsThatOfRanksInARow) {
  for (const std::vector<int>& nodes : {std::vector<int>{0, 0, 0, 0, 0, 0}, {0, 0, 0, 1, 1, 1}, {0, 1, 0, 1, 0, 1}}) {
    for (const int n_together : {2, 3, 6}) {
      comm::run_as_threads(nodes, [&](comm::Transport& world) {
        GroupSum group{world, n_together, false};
        for (const std::size_t n : {5u, 64u, 7u, 1u, 2049u, 5u}) {
          std::vector<double> values(n);
          for (std::size_t i = 0; i < n; ++i) values[i] = world.rank() + 10 * static_cast<double>(i);
          group.sum(values);
          const int first = world.rank() / n_together * n_together;
          const double ranks = n_together * (first + 0.5 * (n_together - 1));
          for (std::size_t i = 0; i < n; ++i)
            ASSERT_EQ(values[i], ranks + 10 * static_cast<double>(i) * n_together) << i << " of " << n;
        }
      });
    }
  }
}

}  // namespace
}  // namespace lockstep::parallel
