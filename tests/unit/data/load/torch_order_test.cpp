#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "data/load/batch_plan.hpp"
#include "data/load/sampler.hpp"

namespace lockstep::data {
namespace {

// See share/compare/data/make_torch_order.py, which writes the file.
struct Golden {
  std::uint64_t n = 0, seed = 0, epoch = 0, n_ranks = 0, rank = 0, n_ids = 0, hash = 0;
  std::vector<std::uint64_t> first{}, last{};
};

std::vector<std::uint64_t> read_ids(std::istream& words) {
  std::vector<std::uint64_t> ids;
  for (std::string word; words >> word && word != ":";) ids.push_back(std::stoull(word));
  return ids;
}

std::vector<Golden> read_golden() {
  std::ifstream file{std::filesystem::path{__FILE__}.parent_path() / "golden" / "torch_order.txt"};
  std::vector<Golden> all;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream words{line};
    Golden g;
    std::string colon;
    words >> g.n >> g.seed >> g.epoch >> g.n_ranks >> g.rank >> g.n_ids >> g.hash >> colon;
    g.first = read_ids(words);
    g.last = read_ids(words);
    all.push_back(std::move(g));
  }
  return all;
}

std::uint64_t fold(const std::vector<std::uint64_t>& ids) {
  std::uint64_t value = 0xcbf2'9ce4'8422'2325;
  for (const std::uint64_t id : ids) value = (value ^ id) * 0x100'0000'01b3;
  return value;
}

/// The ids of one rank in an epoch, batch by batch, as the loader asks for them.
std::vector<std::uint64_t> ids_of(const Sampler& sampler, const Golden& golden, std::uint64_t global_batch) {
  const BatchPlan plan{{.n_samples = golden.n,
                        .global_batch = global_batch,
                        .deal = Deal::strided,
                        .rank = golden.rank,
                        .n_ranks = golden.n_ranks}};
  std::vector<std::uint64_t> ids;
  for (std::uint64_t batch = 0; batch < plan.n_batches(); ++batch) {
    const Share share = plan.share(batch);
    for (std::uint64_t i = 0; i < share.n; ++i) ids.push_back(sampler.at((share.first + i * share.stride) % golden.n));
  }
  return ids;
}

TEST(TorchOrder, EqualsDistributedSamplerForAllRanks) {
  const std::vector<Golden> all = read_golden();
  ASSERT_GT(all.size(), 150u);
  for (const Golden& golden : all) {
    Sampler sampler{golden.n, {.order = Order::torch, .seed = golden.seed}};
    sampler.begin_epoch(golden.epoch);
    for (const std::uint64_t global_batch : {std::uint64_t{64}, std::uint64_t{7}}) {
      const std::vector<std::uint64_t> ids = ids_of(sampler, golden, global_batch);
      const std::string which = "n " + std::to_string(golden.n) + ", seed " + std::to_string(golden.seed) + ", epoch " +
                                std::to_string(golden.epoch) + ", rank " + std::to_string(golden.rank) + " of " +
                                std::to_string(golden.n_ranks);
      ASSERT_EQ(ids.size(), golden.n_ids) << which;
      const auto n_shown = static_cast<std::ptrdiff_t>(golden.first.size());
      ASSERT_EQ(std::vector(ids.begin(), ids.begin() + n_shown), golden.first) << which;
      ASSERT_EQ(std::vector(ids.end() - n_shown, ids.end()), golden.last) << which;
      ASSERT_EQ(fold(ids), golden.hash) << which;
    }
  }
}

TEST(TorchOrder, NothingAndOneSample) {
  EXPECT_TRUE(torch_permutation(0, 1).empty());
  EXPECT_EQ(torch_permutation(1, 1), std::vector<std::uint32_t>{0});
}

TEST(TorchOrder, RefusesWhatTorchOrdersDifferently) {
  try {
    const Sampler sampler{torch_limit, {.order = Order::torch}};
    FAIL() << "no error";
  } catch (const core::Error& error) {
    EXPECT_EQ(error.code(), core::ExitCode::usage);
    EXPECT_NE(error.problem().fix.find("keyed"), std::string::npos);
  }
}

}  // namespace
}  // namespace lockstep::data
