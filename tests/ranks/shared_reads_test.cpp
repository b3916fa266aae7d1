// Whatever fails while ranks read tensors together, no rank waits for another.
#include "training/train/shared_reads.hpp"

#include <gtest/gtest.h>

#include <new>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "runtime/together.hpp"
#include "support/ranks.hpp"

namespace lockstep::training {
namespace {

constexpr std::size_t n_tensors = 4;
constexpr std::size_t nowhere = n_tensors;

/// The tensor at which a rank has no memory: while it is read, or while the first rank uses it.
struct Shortage {
  int rank = 0;
  std::size_t in_read = nowhere;
  std::size_t in_use = nowhere;
};

/// Returns what fails on this rank. Ranks meet in each read, so that all would wait for one that does not come.
std::optional<core::Error> read_with(const Shortage& shortage) {
  const runtime::Communicator& world = support::world();
  const bool is_short = world.rank() == shortage.rank;
  std::vector<std::size_t> reads;
  const auto read = [&](std::size_t i) {
    reads.push_back(i);
    world.barrier();
    if (is_short && i == shortage.in_read) throw std::bad_alloc{};
  };
  const auto use = [&](const ReadTensor& next) {
    for (std::size_t i = 0; i < n_tensors; ++i) {
      if (is_short && i == shortage.in_use) throw std::bad_alloc{};
      next(i);
    }
  };
  auto failure = core::failure_of([&] {
    if (world.rank() == 0) return read_together(n_tensors, read, use);
    read_together(n_tensors, read);
  });
  EXPECT_EQ(reads, (std::vector<std::size_t>{0, 1, 2, 3}));
  return failure;
}

RANKS_TEST(SharedReads, AreMadeByAllRanks) {
  EXPECT_FALSE(read_with({}));
  const auto use_first = [](const ReadTensor& next) { next(0); };
  std::size_t n_read = 0;
  read_together(
      n_tensors, [&](std::size_t) { ++n_read; }, use_first);
  EXPECT_EQ(n_read, n_tensors) << "also of those that are not used";
  EXPECT_THROW(read_together(
                   n_tensors, [](std::size_t) {}, [](const ReadTensor& next) { next(1); }),
               core::Error);
}

RANKS_TEST(SharedReads, EndOnAllRanksIfOneHasNoMemory) {
  const runtime::Communicator& world = support::world();
  std::vector<Shortage> shortages;
  for (std::size_t i = 0; i < n_tensors; ++i) {
    shortages.push_back({.in_use = i});
    for (int rank = 0; rank < world.n_ranks(); ++rank) shortages.push_back({.rank = rank, .in_read = i});
  }
  for (const Shortage& shortage : shortages) {
    const auto mine = read_with(shortage);
    EXPECT_EQ(mine.has_value(), world.rank() == shortage.rank);
    const auto told = core::complaint_of([&] { runtime::fail_together(world, mine); });
    ASSERT_TRUE(told);
    EXPECT_EQ(told->code(), core::ExitCode::system);
    EXPECT_NE(told->problem().what.find("bad_alloc"), std::string::npos) << told->problem().what;
  }
}

}  // namespace
}  // namespace lockstep::training
