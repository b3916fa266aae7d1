// Vectors of more than 2^31 elements: all_reduce in place, its halves out of place. Needs about 14 GB; skipped if there
// is less.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "comm/registry.hpp"
#include "comm/transport.hpp"
#include "runtime/device.hpp"
#include "runtime/memory.hpp"
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

/// Calls `body` for pieces of `data` as long as a block; the last one may be shorter.
template <class Body>
void for_each_piece(Elements data, std::size_t block, Body body) {
  for (std::size_t at = 0; at < data.size(); at += block) body(data.subspan(at, std::min(block, data.size() - at)));
}

void fill(Elements data, const std::vector<std::uint8_t>& block) {
  for_each_piece(data, block.size(), [&](Elements piece) { std::copy_n(block.begin(), piece.size(), piece.begin()); });
}

bool is_filled(Elements data, const std::vector<std::uint8_t>& block) {
  bool is_right = true;
  for_each_piece(data, block.size(), [&](Elements piece) {
    is_right = is_right && std::memcmp(piece.data(), block.data(), piece.size()) == 0;
  });
  return is_right;
}

/// `block` as it continues after `offset` elements of a vector filled with it.
std::vector<std::uint8_t> shifted(std::vector<std::uint8_t> block, std::size_t offset) {
  std::rotate(block.begin(), block.begin() + static_cast<std::ptrdiff_t>(offset % block.size()), block.end());
  return block;
}

class LargeCount : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const bool has_memory = runtime::available_memory().value >= std::uint64_t{14} << 30;
    if (over_->n_ranks() != 2 || support::world().any(!has_memory)) GTEST_SKIP() << "needs 2 ranks and 14 GB";
  }

  void run(comm::Collective collective, std::span<const std::byte> input, std::span<std::byte> output) {
    const comm::Call call{collective, core::DType::uint8, comm::ReduceOp::sum, n};
    const auto plan = comm::make_plan(*comm::find_algorithm(GetParam()), *over_, call);
    plan->bind(input, output);
    plan->run();
  }

  const std::unique_ptr<comm::Transport> over_ = comm::make_transport(support::world(), {.oversubscribed = true});
  const std::size_t rank_ = static_cast<std::size_t>(over_->rank());
};

TEST_P(LargeCount, EveryElementArrives) {
  const runtime::Buffer buffer{core::Bytes{n}};
  fill(buffer.as<std::uint8_t>(), make_block(1, rank_ + 1));
  run(comm::Collective::all_reduce, buffer.bytes(), buffer.bytes());
  EXPECT_TRUE(is_filled(buffer.as<std::uint8_t>(), make_block(2, 3)));
}

class LargeHalves : public LargeCount {};

TEST_P(LargeHalves, ReduceScatterOutOfPlace) {
  const core::Slice mine = comm::Call{.n_elements = n}.part(over_->rank(), 2);
  const runtime::Buffer input{core::Bytes{n}};
  const runtime::Buffer output{core::Bytes{mine.count}};
  fill(input.as<std::uint8_t>(), make_block(1, rank_ + 1));
  run(comm::Collective::reduce_scatter, input.bytes(), output.bytes());
  EXPECT_TRUE(is_filled(output.as<std::uint8_t>(), shifted(make_block(2, 3), mine.offset)));
}

TEST_P(LargeHalves, AllGatherOutOfPlace) {
  const core::Slice mine = comm::Call{.n_elements = n}.part(over_->rank(), 2);
  const runtime::Buffer input{core::Bytes{mine.count}};
  const runtime::Buffer output{core::Bytes{n}};
  fill(input.as<std::uint8_t>(), shifted(make_block(1, 1), mine.offset));
  run(comm::Collective::all_gather, input.bytes(), output.bytes());
  EXPECT_TRUE(is_filled(output.as<std::uint8_t>(), make_block(1, 1)));
}

std::string name_of(const testing::TestParamInfo<const char*>& which) { return which.param; }
INSTANTIATE_TEST_SUITE_P(Algorithms, LargeCount, testing::Values("ring"), name_of);
INSTANTIATE_TEST_SUITE_P(DISABLED_Algorithms, LargeCount, testing::Values("mpi", "rabenseifner", "shm"), name_of);
INSTANTIATE_TEST_SUITE_P(DISABLED_Algorithms, LargeHalves, testing::Values("ring"), name_of);

}  // namespace
}  // namespace lockstep
