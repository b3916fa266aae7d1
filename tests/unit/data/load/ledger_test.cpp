#include "data/load/ledger.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace lockstep::data {
namespace {

constexpr std::uint64_t n_ids = 1000;

TEST(Ledger, IsTheSameInAnyOrder) {
  Ledger up, down;
  for (std::uint64_t id = 0; id < n_ids; ++id) {
    up.add(id);
    down.add(n_ids - 1 - id);
  }
  EXPECT_EQ(up, down);
  EXPECT_EQ(up, Ledger::complete(n_ids));
}

TEST(Ledger, SumsOfPartsAreTheWhole) {
  Ledger even, odd;
  for (std::uint64_t id = 0; id < n_ids; ++id) (id % 2 == 0 ? even : odd).add(id);
  EXPECT_NE(even, Ledger::complete(n_ids));
  EXPECT_EQ(even.hash() + odd.hash(), Ledger::complete(n_ids).hash());
}

// One sample twice instead of another: the count is right, the hash is not.
TEST(Ledger, NoticesEveryExchangeOfOneSampleForAnother) {
  for (std::uint64_t missing = 0; missing < 50; ++missing) {
    for (std::uint64_t twice = 0; twice < 50; ++twice) {
      if (missing == twice) continue;
      Ledger ledger;
      for (std::uint64_t id = 0; id < 50; ++id) ledger.add(id == missing ? twice : id);
      ASSERT_NE(ledger, Ledger::complete(50)) << missing << " missing, " << twice << " twice";
    }
  }
}

TEST(Ledger, NothingIsComplete) { EXPECT_EQ(Ledger{}, Ledger::complete(0)); }

// Stored in checkpoints: the value for given ids never changes.
TEST(Ledger, KnownAnswer) {
  Ledger ledger;
  ledger.add(0);
  EXPECT_EQ(ledger.hash(), 0xe220'a839'7b1d'cdafu);  // the first output of SplitMix64 seeded with 0
}

}  // namespace
}  // namespace lockstep::data
