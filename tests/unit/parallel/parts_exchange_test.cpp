#include "parallel/parts_exchange.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>

#include "comm/transport_threads.hpp"
#include "core/error.hpp"
#include "unit/parallel/ranks.hpp"

namespace lockstep::parallel {
namespace {

using Parts = std::vector<core::Slice>;

constexpr std::size_t vector_size = 500;

/// Parts that differ in number and length between rounds: none on some ranks, the same on all, all elements.
Parts parts_of(int rank, int round) {
  const auto r = static_cast<std::size_t>(rank);
  switch (round % 5) {
    case 0: return {{r * 7, 3}, {100 + r, 40}, {499, 1}};
    case 1: return rank % 2 == 0 ? Parts{} : Parts{{r * 31 % 400, 77}};
    case 2: return {{12, 5}, {17 + r, 1}};
    case 3: return {};
    default: break;
  }
  return {{0, vector_size}};
}

std::vector<float> vector_of(int rank, int round) {
  std::vector<float> vector(vector_size);
  for (const core::Slice& part : parts_of(rank, round))
    for (std::size_t i = part.offset; i < part.end(); ++i) vector[i] = support::odd_value(i, rank, round);
  return vector;
}

/// The sum in the order of ranks.
std::vector<float> sum_of(int n_ranks, int round) {
  std::vector<float> sum(vector_size);
  for (int rank = 0; rank < n_ranks; ++rank) {
    const auto vector = vector_of(rank, round);
    for (std::size_t i = 0; i < vector_size; ++i) sum[i] += vector[i];
  }
  return sum;
}

std::vector<std::uint64_t> words_of_all(int n_ranks, int round) {
  std::vector<std::uint64_t> n_words;
  for (int rank = 0; rank < n_ranks; ++rank) n_words.push_back(PartsExchange::count_words(parts_of(rank, round)));
  return n_words;
}

void exchange_rounds(comm::Transport& transport, int n_rounds) {
  PartsExchange exchange{transport};
  exchange.reserve((vector_size + 10) * static_cast<std::size_t>(transport.n_ranks()));
  for (int round = 0; round < n_rounds; ++round) {
    auto vector = vector_of(transport.rank(), round);
    exchange.start(vector, parts_of(transport.rank(), round), words_of_all(transport.n_ranks(), round));
    for (std::uint64_t looks = 0; round % 2 == 0 && !exchange.test(); ++looks) transport.relax(looks);
    if (round % 2 == 1) exchange.wait();
    const auto expected = sum_of(transport.n_ranks(), round);
    EXPECT_EQ(std::memcmp(vector.data(), expected.data(), vector_size * sizeof(float)), 0)
        << transport.n_ranks() << " ranks, round " << round;
  }
}

TEST(PartsExchange, AddsInTheOrderOfRanks) {
  for (const int n_ranks : {1, 2, 3, 5})
    comm::run_as_threads(support::Nodes(static_cast<std::size_t>(n_ranks)),
                         [](comm::Transport& transport) { exchange_rounds(transport, 10); });
}

TEST(PartsExchange, SendsNoMoreThanParts) {
  constexpr std::uint64_t n_ranks = 4;
  const comm::Traffic traffic =
      comm::run_as_threads({0, 1, 2, 3}, [](comm::Transport& transport) { exchange_rounds(transport, 2); });
  std::uint64_t n_words = 0;
  for (const int round : {0, 1})
    for (const std::uint64_t n : words_of_all(static_cast<int>(n_ranks), round)) n_words += n;
  EXPECT_EQ(traffic.bytes, n_words * sizeof(float) * (n_ranks - 1));
  EXPECT_EQ(traffic.messages, (n_ranks + n_ranks / 2) * (n_ranks - 1));  // half of the ranks have no parts in round 1
}

TEST(PartsExchange, TestDoesNotWait) {
  std::atomic<bool> has_tested{false};
  const auto body = [&](comm::Transport& transport) {
    PartsExchange exchange{transport};
    exchange.reserve(2 * (vector_size + 10));
    auto vector = vector_of(transport.rank(), 0);
    for (std::uint64_t looks = 0; transport.rank() == 1 && !has_tested; ++looks) transport.relax(looks);
    exchange.start(vector, parts_of(transport.rank(), 0), words_of_all(2, 0));
    if (transport.rank() == 0) {
      EXPECT_FALSE(exchange.test());
      has_tested = true;
    }
    exchange.wait();
    EXPECT_EQ(vector, sum_of(2, 0));
  };
  comm::run_as_threads({0, 1}, body, core::Seconds{5});
}

TEST(PartsExchange, AsksForRoom) {
  comm::run_as_threads({0}, [](comm::Transport& transport) {
    PartsExchange exchange{transport};
    exchange.reserve(50);
    exchange.reserve(7);
    std::vector<float> vector(vector_size);
    const std::vector<std::uint64_t> fitting{50}, too_long{51};
    exchange.start(vector, Parts{{0, 48}}, fitting);
    exchange.wait();
    EXPECT_THROW(exchange.start(vector, Parts{{0, 49}}, too_long), core::Error);
  });
}

}  // namespace
}  // namespace lockstep::parallel
