// A bit that flips in what a rank has written is found by that rank in the next step, which names tensor, node and
// rank; no other rank finds anything. For drawn runs, by every strategy.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>

#include "comm/transport_threads.hpp"
#include "core/error.hpp"
#include "strategies/made_run.hpp"
#include "support/draws.hpp"
#include "support/sanitized.hpp"

namespace lockstep::support {
namespace {

/// What each rank has flipped and found.
struct Watched {
  bool flips = false;
  std::optional<core::Problem> found{};
  bool has_found = false;  ///< before fail_for_change()
};

/// After a step, `flips(rank)` flip a bit of their part of `slot`, if they have one.
template <class Flips>
std::vector<Watched> watched(const MadeRun& run, parallel::Strategy strategy, std::size_t slot, const Flips& flips) {
  std::vector<Watched> ranks(run.nodes.size());
  comm::run_as_threads(run.nodes, [&](comm::Transport& world) {
    MadeRank rank{run, world, strategy};
    Watched& mine = ranks[static_cast<std::size_t>(world.rank())];
    rank.step(0);
    mine.flips = flips(world.rank()) && rank.synchronizer().flip_bit(slot);
    world.communicator().barrier();  // all flip between two steps
    rank.step(1);
    mine.has_found = rank.synchronizer().guard().has_changed();
    if (const auto error = core::complaint_of([&] { rank.synchronizer().guard().fail_for_change(); }))
      mine.found = error->problem();
  });
  return ranks;
}

void expect_named(const Watched& rank, const MadeRun& run, std::size_t slot, std::size_t number) {
  ASSERT_EQ(rank.has_found, rank.flips) << "rank " << number;
  ASSERT_EQ(rank.found.has_value(), rank.flips);
  if (!rank.found) return;
  EXPECT_EQ(rank.found->what,
            fmt::format("parameters of '{}' changed in memory between two steps", run.slots[slot].name));
  EXPECT_EQ(rank.found->where, fmt::format("rank {} on node {}", number, run.nodes[number]));
}

TEST(StrategyGuard, TheRankThatWroteABitFindsThatItHasFlipped) {
  const std::uint64_t first = first_draw(1), n_draws = number_of_draws(is_slow ? 8 : 48);
  std::size_t n_flips = 0, n_alone = 0;
  for (std::uint64_t seed = first; seed < first + n_draws; ++seed) {
    const MadeRun run = draw_run(seed, placements());
    Numbers numbers{~seed};
    const std::size_t slot = numbers.below(run.slots.size());
    const int one = static_cast<int>(numbers.below(run.nodes.size()));
    for (const parallel::Strategy strategy : parallel::strategies_on(false)) {
      SCOPED_TRACE(testing::Message() << parallel::name(strategy) << ", slot " << slot << ", " << run.text());
      std::size_t n_writers = 0;
      for (const bool all : {true, false}) {
        const auto ranks = watched(run, strategy, slot, [&](int rank) { return all || rank == one; });
        for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
          expect_named(ranks[rank], run, slot, rank);
          if (all) n_writers += ranks[rank].flips ? 1 : 0;
          if (!all) n_alone += ranks[rank].flips ? 1 : 0;
        }
      }
      EXPECT_EQ(n_writers > 0, !run.slots[slot].slice.empty()) << "nobody guards this slot";
      n_flips += n_writers;
    }
    if (testing::Test::HasFailure()) return;  // one is enough to look at
  }
  EXPECT_GT(n_flips, n_draws);
  EXPECT_GT(n_alone, n_draws / 4);
}

}  // namespace
}  // namespace lockstep::support
