#include "reduce_all/slowest.hpp"

#include <gtest/gtest.h>

#include "comm/transport_threads.hpp"

namespace lockstep::reduce_all {
namespace {

TEST(Slowest, TakesTheLongestTimeOfEverySample) {
  const std::vector<double> times[] = {{1, 5, 1}, {2, 2, 2}, {1, 1, 1}};
  const std::vector<std::uint32_t> n_slowest{1, 2, 0};
  std::vector<std::vector<double>> found(3);
  std::vector<std::uint32_t> counts(3);
  comm::run_as_threads({0, 0, 0}, [&](comm::Transport& transport) {
    const auto rank = static_cast<std::size_t>(transport.rank());
    found[rank] = times[rank];
    counts[rank] = keep_slowest(transport, found[rank]);
  });
  for (const std::vector<double>& all : found) EXPECT_EQ(all, (std::vector<double>{2, 5, 2}));
  EXPECT_EQ(counts, n_slowest);
}

TEST(Slowest, OneRankKeepsItsOwn) {
  comm::run_as_threads({0}, [](comm::Transport& transport) {
    std::vector<double> times{3, 4};
    EXPECT_EQ(keep_slowest(transport, times), 2U);
    EXPECT_EQ(times, (std::vector<double>{3, 4}));
  });
}

// A gather at rank 0 would receive 63 times the samples of a rank.
TEST(Slowest, NoRankReceivesMoreThanTwiceItsOwnTimes) {
  constexpr std::size_t n_ranks = 64;
  constexpr std::size_t n_samples = 3000;  // fewer samples use fewer messages instead
  const comm::Traffic traffic = comm::run_as_threads(std::vector<int>(n_ranks), [](comm::Transport& transport) {
    std::vector<double> times(n_samples, transport.rank());
    EXPECT_EQ(keep_slowest(transport, times), transport.rank() == n_ranks - 1 ? n_samples : 0);
  });
  EXPECT_LE(traffic.bytes, 2 * n_ranks * n_samples * sizeof(double));
  EXPECT_LE(traffic.steps, 12U);
}

}  // namespace
}  // namespace lockstep::reduce_all
