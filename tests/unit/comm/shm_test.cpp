// Shared memory: every way of writing gives the same exact result, for more calls than there are places to write to.
#include <gtest/gtest.h>

#include <chrono>

#include "comm/algorithms/shm_plans.hpp"
#include "comm/algorithms/shm_readers.hpp"
#include "comm/transport_threads.hpp"
#include "runtime/memory.hpp"
#include "support/collective_case.hpp"

namespace lockstep {
namespace {

using comm::Algorithm;
using comm::Call;
using comm::Collective;
using comm::PeerDistance;
using comm::ReduceOp;
using comm::Transport;
using comm::Writing;
using core::DType;
using std::chrono::nanoseconds;
using support::CollectiveCase;

template <Writing writing>
std::unique_ptr<comm::Plan> make_flat(Transport& transport, const Call& call) {
  return comm::make_flat_plan(transport, call, writing);
}

template <Writing writing>
std::unique_ptr<comm::Plan> make_sliced(Transport& transport, const Call& call) {
  return comm::make_sliced_plan(transport, call,
                                {.n_owners = transport.n_ranks(),
                                 .divisor = call.op == ReduceOp::avg ? transport.n_ranks() : 1,
                                 .piece_bytes = 4096,
                                 .finish_across = {},
                                 .writing = writing});
}

Algorithm algorithm(std::string_view name, comm::MakePlan make) {
  const comm::Implementation all{.make = make};
  return {.name = name,
          .summary = {},
          .steps = {},
          .bytes = {},
          .all_reduce = all,
          .reduce_scatter = all,
          .all_gather = all};
}

const Algorithm ways[] = {
    algorithm("flat, measured", make_flat<Writing::measured>),
    algorithm("flat, cached", make_flat<Writing::cached>),
    algorithm("flat, streaming", make_flat<Writing::streaming>),
    algorithm("sliced, measured", make_sliced<Writing::measured>),
    algorithm("sliced, cached", make_sliced<Writing::cached>),
    algorithm("sliced, streaming", make_sliced<Writing::streaming>),
};

TEST(Shm, EveryWayOfWritingIsExact) {
  for (const int n_ranks : {2, 3}) {
    for (const Algorithm& way : ways) {
      EXPECT_NO_THROW(comm::run_as_threads(
          std::vector<int>(static_cast<std::size_t>(n_ranks)),
          [&](Transport& t) {
            for (const Collective collective : comm::all_collectives)
              for (const std::size_t n : {513, 2111, 20'011})
                for (const bool in_place : {false, true})
                  support::check(t, {.algorithm = &way,
                                     .call = {collective, DType::bfloat16, ReduceOp::sum, n},
                                     .in_place = in_place,
                                     .mode = in_place ? support::Mode::start_test : support::Mode::run});
          }))
          << way.name << ", " << n_ranks << " ranks";
    }
  }
}

TEST(Shm, PlacesAreWrittenAgain) {
  const Call call{Collective::all_reduce, DType::float32, ReduceOp::sum, 2111};  // over 8 KiB
  const std::size_t n_turns = comm::count_turns(call.n_elements * sizeof(float), 2, Writing::measured);
  ASSERT_GT(n_turns, 2U);
  for (const Algorithm& way : ways) {
    EXPECT_NO_THROW(comm::run_as_threads({0, 0}, [&](Transport& t) {
      support::check(t, {.algorithm = &way, .call = call, .n_calls = static_cast<int>(2 * n_turns + 3)});
    })) << way.name;
  }
}

TEST(Shm, PlacesTakeBoundedMemory) {
  EXPECT_EQ(comm::count_turns(64, 2, Writing::measured), 2U);
  EXPECT_EQ(comm::count_turns(std::size_t{1} << 30, 2, Writing::measured), 2U);
  EXPECT_EQ(comm::count_turns(100'000, 2, Writing::cached), 2U);
  for (const std::size_t n_ranks : {2, 16, 128})
    for (const std::size_t n_bytes : {8 << 10, 100'000, 1 << 20})
      EXPECT_LE((comm::count_turns(n_bytes, n_ranks, Writing::measured) - 2) * n_bytes * n_ranks,
                runtime::last_level_cache().value / 2);
}

TEST(Shm, ManyRanksTogetherShareBoundedMemory) {
  constexpr std::size_t n_ranks = 200;
  for (const Collective collective : {Collective::reduce_scatter, Collective::all_gather}) {
    const Call call{collective, DType::float32, ReduceOp::sum, n_ranks * 8192};
    const comm::Traffic traffic = comm::run_as_threads(std::vector<int>(n_ranks), [&](Transport& t) {
      static_cast<void>(comm::make_plan(*comm::find_algorithm("shm"), t, call));
    });
    const std::size_t further_turns = runtime::last_level_cache().value / 2;
    EXPECT_LE(traffic.shared, (std::size_t{64} << 20) + further_turns + n_ranks * 1024) << comm::name(collective);
  }
}

/// 32 ranks: two sockets of four last-level caches of four ranks.
std::vector<comm::Seat> two_sockets() {
  std::vector<comm::Seat> seats;
  for (int r = 0; r < 32; ++r) seats.push_back({.socket = r / 16, .cache = r / 4});
  return seats;
}

comm::Traffic run_shm(const std::vector<comm::Seat>& seats, const CollectiveCase& which) {
  return comm::run_as_threads(
      std::vector<int>(seats.size()), [&](Transport& t) { support::check(t, which); }, {60}, seats);
}

TEST(ShmInGroups, EachLineCrossesTheSocketsOnceEachWay) {
  const Algorithm* shm = comm::find_algorithm("shm");
  for (const std::size_t n : {1, 7, 100, 100'003}) {
    const CollectiveCase once{
        .algorithm = shm, .call = {Collective::all_reduce, DType::float32, ReduceOp::sum, n}, .n_calls = 1};
    EXPECT_EQ(run_shm(two_sockets(), once).read_across, 2 * n * sizeof(float)) << n;
    auto sockets_only = two_sockets();
    for (comm::Seat& seat : sockets_only) seat.cache = 0;
    EXPECT_EQ(run_shm(sockets_only, once).read_across, 2 * n * sizeof(float)) << n;
  }
}

TEST(ShmInGroups, ResultIsExactForEveryTypeAndOperation) {
  auto seats = two_sockets();
  seats.resize(28);  // sockets of 4 and 3 caches; with more ranks, some int8 sums would not fit
  const Algorithm* shm = comm::find_algorithm("shm");
  EXPECT_NO_THROW(comm::run_as_threads(
      std::vector<int>(seats.size()),
      [&](Transport& t) {
        for (const DType dtype : core::all_dtypes)
          for (const ReduceOp op : comm::all_reduce_ops)
            support::check(t, {.algorithm = shm,
                               .call = {Collective::all_reduce, dtype, op, 203},
                               .in_place = true,
                               .mode = support::Mode::start_test,
                               .n_calls = 2});
      },
      {60}, seats));
}

TEST(ShmInGroups, GroupsMayBeUneven) {
  auto uneven = two_sockets();
  uneven.resize(22);  // the last of 6 caches has 2 ranks
  auto sockets_only = uneven;
  for (comm::Seat& seat : sockets_only) seat.cache = 0;
  for (const auto& seats : {uneven, sockets_only}) {
    const CollectiveCase longer{.algorithm = comm::find_algorithm("shm"),
                                .call = {Collective::all_reduce, DType::float64, ReduceOp::avg, 200'003}};
    EXPECT_NO_THROW(run_shm(seats, longer));
  }
}

// A last-level cache or a socket may have many cores, and the places of ranks may be unknown.
TEST(ShmInGroups, NoRankReadsFromMany) {
  const CollectiveCase longer{.algorithm = comm::find_algorithm("shm"),
                              .call = {Collective::all_reduce, DType::float64, ReduceOp::avg, 20'003},
                              .n_calls = 1};
  const std::size_t many = 100'003;
  const CollectiveCase once{.algorithm = longer.algorithm,
                            .call = {Collective::all_reduce, DType::float32, ReduceOp::sum, many},
                            .n_calls = 1};
  for (const int n_ranks : {17, 33, 50}) {
    const comm::Traffic traffic = run_shm(std::vector<comm::Seat>(static_cast<std::size_t>(n_ranks)), longer);
    EXPECT_LE(traffic.most_read, 15u + 3u) << n_ranks;
  }
  std::vector<comm::Seat> one_cache_each;
  for (int r = 0; r < 40; ++r) one_cache_each.push_back({.socket = r / 20, .cache = r / 20});
  const comm::Traffic traffic = run_shm(one_cache_each, once);
  EXPECT_LE(traffic.most_read, 9u + 1u + 1u);
  EXPECT_EQ(traffic.read_across, 2 * many * sizeof(float));
}

TEST(PeerDistance, FollowsWhatLooksTake) {
  PeerDistance distance;
  EXPECT_FALSE(distance.is_far());
  for (int i = 0; i < 8; ++i) distance.note(nanoseconds{30});
  EXPECT_FALSE(distance.is_far());
  distance.note(nanoseconds{3'000'000});  // an interruption
  EXPECT_FALSE(distance.is_far());
  for (int i = 0; i < 4; ++i) distance.note(nanoseconds{120});
  EXPECT_TRUE(distance.is_far());
  for (int i = 0; i < 4; ++i) distance.note(nanoseconds{30});
  EXPECT_FALSE(distance.is_far());
}

TEST(PeerDistance, CountsOnlyLooksAtWhatIsNew) {
  comm::Flag flag{};
  PeerDistance distance;
  EXPECT_FALSE(distance.reached(flag, 1));
  flag.publish(2);
  EXPECT_TRUE(distance.reached(flag, 1));
  for (int i = 0; i < 8; ++i) distance.note(nanoseconds{150});
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(distance.reached(flag, 2));
  EXPECT_TRUE(distance.is_far());  // its line is in our own cache, so the time means nothing
}

}  // namespace
}  // namespace lockstep
