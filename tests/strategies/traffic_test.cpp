// What ranks send in a step, as their transport counts it, is what is counted before: to the message and the byte, for
// drawn slots, nodes, optimizers and clipping, by every strategy.
#include "parallel/traffic.hpp"

#include <gtest/gtest.h>

#include "comm/transport_threads.hpp"
#include "strategies/made_run.hpp"
#include "support/draws.hpp"
#include "support/sanitized.hpp"

namespace lockstep::support {
namespace {

/// 2, 3, 4 and 8 ranks: on one node, each on a node, and nodes of equal or different size, in blocks or in turn.
const std::vector<Nodes> nodes_of_traffic{{0, 0},
                                          {0, 1},
                                          {0, 0, 1},
                                          {0, 1, 2},
                                          {0, 1, 1},
                                          {0, 0, 1, 1},
                                          {0, 1, 0, 1},
                                          {0, 0, 0, 1},
                                          {0, 1, 2, 3},
                                          {0, 0, 1, 2},
                                          {0, 0, 0, 0, 1, 1, 1, 1},
                                          {0, 0, 1, 1, 2, 2, 3, 3},
                                          {0, 1, 0, 1, 0, 1, 0, 1},
                                          {0, 1, 2, 3, 4, 5, 6, 7},
                                          {0, 0, 0, 1, 1, 2, 2, 2}};

/// What ranks send in one step and in three, and what is counted before for each step.
struct Sent {
  comm::Traffic in_one{}, in_three{};
  comm::Cost expected{};
};

Sent sent_by(const MadeRun& run, parallel::Strategy strategy) {
  Sent sent;
  const auto traffic_of = [&](int n_steps) {
    return comm::run_as_threads(run.nodes, [&](comm::Transport& world) {
      MadeRank rank{run, world, strategy};
      for (int step = 0; step < n_steps; ++step) rank.step(step);
      if (world.rank() == 0)
        sent.expected = parallel::count_traffic(rank.synchronizer().sharding(),
                                                {.nodes = run.nodes,
                                                 .strategy = strategy,
                                                 .unit_reads = run.options.unit_reads,
                                                 .prefetch = run.options.prefetch,
                                                 .is_deterministic = run.options.is_deterministic,
                                                 .clips = run.clip_norm > 0,
                                                 .has_norms = optim::needs_norms(run.options.optimizer.kind)});
    });
  };
  sent.in_one = traffic_of(1);
  sent.in_three = traffic_of(3);
  return sent;
}

TEST(StrategyTraffic, OfDrawnRunsIsWhatIsCountedBefore) {
  const std::uint64_t first = first_draw(1), n_draws = number_of_draws(is_slow ? 15 : 90);
  std::size_t n_that_send = 0;
  for (std::uint64_t seed = first; seed < first + n_draws; ++seed) {
    const MadeRun run = draw_run(seed, nodes_of_traffic);
    for (const parallel::Strategy strategy : parallel::strategies_on(false)) {
      SCOPED_TRACE(testing::Message() << parallel::name(strategy) << ", " << run.text());
      const Sent sent = sent_by(run, strategy);
      EXPECT_EQ(sent.in_three.messages - sent.in_one.messages, 2 * sent.expected.messages);
      EXPECT_EQ(sent.in_three.bytes - sent.in_one.bytes, 2 * sent.expected.bytes);
      n_that_send += sent.expected.bytes > 0 ? 1 : 0;
    }
    if (testing::Test::HasFailure()) return;  // one is enough to look at
  }
  EXPECT_GT(n_that_send, n_draws / 2);
}

}  // namespace
}  // namespace lockstep::support
