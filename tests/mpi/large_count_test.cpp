// Vectors of more than 2^31 elements, in place. Needs about 14 GB; without them the test is skipped.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "comm/registry.hpp"
#include "comm/transport_mpi.hpp"
#include "runtime/buffer.hpp"
#include "support/mpi_main.hpp"

namespace lockstep {
namespace {

constexpr std::size_t n = (std::size_t{1} << 31) + 12'345;

using Elements = std::span<std::uint8_t>;

/// A block of `factor * (3 (i mod 41) / 2) + shift`: 41 divides neither 2^30 nor 2^31, so a wrap there shows.
std::vector<std::uint8_t> make_block(std::size_t factor, std::size_t shift) {
  std::vector<std::uint8_t> block(41 * 4096);
  for (std::size_t i = 0; i < block.size(); ++i)
    block[i] = static_cast<std::uint8_t>(factor * (3 * (i % 41) / 2) + shift);
  return block;
}

/// Calls `body` for pieces of `data` that are as long as a block; the last one may be shorter.
template <class Body>
void for_each_piece(Elements data, std::size_t block, Body body) {
  for (std::size_t at = 0; at < data.size(); at += block) body(data.subspan(at, std::min(block, data.size() - at)));
}

class LargeCount : public testing::TestWithParam<const char*> {};

TEST_P(LargeCount, EveryElementArrives) {
  const auto over = comm::make_mpi_transport(support::world(), {.oversubscribed = true});
  const bool has_memory = runtime::available_memory().value >= std::uint64_t{14} << 30;
  if (over->n_ranks() != 2 || support::world().any(!has_memory)) GTEST_SKIP() << "needs 2 ranks and 14 GB";
  const comm::Algorithm& algorithm = *comm::find_algorithm(GetParam());
  const comm::Call call{comm::Collective::all_reduce, core::DType::uint8, comm::ReduceOp::sum, n};
  const runtime::HostBuffer buffer{core::Bytes{n}};
  const auto data = buffer.as<std::uint8_t>();
  const std::vector<std::uint8_t> mine = make_block(1, static_cast<std::size_t>(over->rank()) + 1);
  for_each_piece(data, mine.size(), [&](Elements piece) { std::copy_n(mine.begin(), piece.size(), piece.begin()); });
  const auto plan = comm::make_plan(algorithm, *over, call);
  plan->bind(buffer.bytes(), buffer.bytes());
  plan->run();
  const std::vector<std::uint8_t> sum = make_block(2, 3);
  bool is_right = true;
  for_each_piece(data, sum.size(), [&](Elements piece) {
    is_right = is_right && std::memcmp(piece.data(), sum.data(), piece.size()) == 0;
  });
  EXPECT_TRUE(is_right);
}

INSTANTIATE_TEST_SUITE_P(Algorithms, LargeCount, testing::Values("mpi", "ring", "rabenseifner", "shm"),
                         [](const auto& which) { return std::string{which.param}; });

}  // namespace
}  // namespace lockstep
