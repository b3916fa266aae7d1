// Weights and losses of every strategy, on any placement of ranks, have the bits of ddp on one rank. The check draws
// rows of one table, and tests with the label long take all of it.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <iostream>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "strategies/words.hpp"
#include "support/draws.hpp"
#include "support/lockstep_program.hpp"
#include "support/sanitized.hpp"
#include "unit/io/temporary_folder.hpp"

namespace lockstep::support {
namespace {

struct Network {
  const char* name;
  const char* words;
  const char* in_check;  ///< what makes it small enough there
  bool tries_all;        ///< strategies in each draw; else one that is not ddp, on several nodes
};

// The last batch of samples is a part of one, and goes to some of the ranks only.
constexpr std::array networks{
    Network{"toy", "toy --synthetic-samples 54", "", true},
    Network{"mnist_cnn", "digits --synthetic-samples 54", "", true},
    Network{"movielens", "movielens --synthetic --synthetic-samples 54 --users 300 --items 500", "", true},
    Network{"resnet18",
            "cifar_resnet18 --synthetic --synthetic-steps 2 --image-size 8 --classes 4 --bn-group 2 --drop-last "
            "--augment normalize:0.4:0.2",
            "", false},
    Network{"resnet50", "resnet50_synthetic --synthetic-steps 2 --image-size 64 --classes 10 --bn-group 2",
            "--image-size 32 --synthetic-steps 1", false}};
/// The network that a draw in the check takes, by its seed: large networks are rare.
constexpr std::array<std::size_t, 8> network_of_draw{4, 1, 2, 0, 3, 1, 2, 0};

constexpr std::array optimizers{"sgd --lr 0.05 --momentum 0.9", "adamw --lr 0.001", "lamb --lr 0.01",
                                "lars --lr 0.5 --momentum 0.9"};
constexpr std::array clips{"0", "0.1"};
constexpr std::array parts{"1", "3"};
/// The least parameters of units: fewer than in recipes, so that networks have several units, or many. And how many
/// units fsdp gathers before it needs them.
constexpr std::array units{"5000", "1", "20000"};
constexpr std::array prefetches{"1", "0", "2"};

/// Returns the flags of units that a strategy takes. `strategy`: its index in strategy_words().
std::string words_of_units(std::size_t strategy, std::size_t turn) {
  const bool gathers = parallel::divides_parameters(parallel::strategies_on(false)[strategy]);
  return std::string{" --unit-params "} + units[turn % units.size()] +
         (gathers ? std::string{" --prefetch "} + prefetches[turn / units.size() % prefetches.size()] : "");
}

using Nodes = std::vector<int>;
const std::vector<Nodes> placements{{0}, {0, 0}, {0, 1}, {0, 0, 0, 0}, {0, 0, 1, 1}, {0, 1, 2, 3}};
const std::array<Nodes, 2> two_or_four_nodes{{{0, 0, 1, 1}, {0, 1, 2, 3}}};

/// What is trained: one of each column of the table.
struct Row {
  std::size_t network, optimizer = 0, clip = 0, part = 0;

  /// Without the number of parts, which may change nothing.
  [[nodiscard]] std::string whole() const {
    return std::string{networks[network].words} + " --batch 24 --epochs 1 --val-split= --save-every 0 --optimizer " +
           optimizers[optimizer] + " --clip-norm " + clips[clip];
  }
  [[nodiscard]] std::string words() const { return whole() + " --accumulate " + parts[part]; }
};

/// Trains in folders of its own, and returns digests.
class Trained {
 public:
  explicit Trained(const std::string& more = "") : more_{more} {}

  std::string digest(const std::string& words, const std::string& strategy, const Nodes& nodes) const {
    const io::TemporaryFolder folder;
    const Ended ended = run_lockstep(words_of("train " + words + " " + more_ + " --deterministic --threads 1 --digest" +
                                              " --strategy " + strategy + " --run-dir " + folder / "r"),
                                     nodes);
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    EXPECT_FALSE(ended.line("digest").empty()) << ended.out;
    return ended.line("digest");
  }

  void expect(const std::string& expected, const std::string& words, const std::string& strategy,
              const Nodes& nodes) const {
    EXPECT_EQ(digest(words, strategy, nodes), expected) << "lockstep train " << words << " " << more_ << " --strategy "
                                                        << strategy << ", on nodes " << testing::PrintToString(nodes);
  }

 private:
  std::string more_;
};

// Seeds in a row try every strategy on nearly every placement.
TEST(Digests, DrawnRowsHaveThatOfDdpOnOneRank) {
  const std::uint64_t first = first_draw(1), n_draws = number_of_draws(is_slow ? 3 : network_of_draw.size());
  std::map<std::string, std::set<Nodes>> tried;
  std::set<std::string> settings, digests;
  for (std::uint64_t seed = first; seed < first + n_draws; ++seed) {
    std::mt19937_64 random{seed};
    const Row row{network_of_draw[seed % network_of_draw.size()], random() % optimizers.size(), random() % clips.size(),
                  random() % parts.size()};
    const Trained trained{networks[row.network].in_check};
    const std::string expected = trained.digest(row.words(), "ddp", {0});
    if (settings.insert(row.whole()).second) digests.insert(expected);
    for (std::size_t i = 0; i < strategy_words().size(); ++i) {
      const bool is_small = networks[row.network].tries_all;
      if (!is_small && 1 + seed % (strategy_words().size() - 1) != i) continue;
      const Nodes& nodes = is_small ? placements[(seed + i) % placements.size()] : two_or_four_nodes[seed / 4 % 2];
      trained.expect(expected, row.words() + words_of_units(i, seed / 2 + i), strategy_words()[i], nodes);
      tried[strategy_words()[i]].insert(nodes);
    }
    if (testing::Test::HasFailure()) return;  // one is enough to look at
  }
  EXPECT_EQ(digests.size(), settings.size()) << "a setting changes nothing";
  if (n_draws < network_of_draw.size()) return;
  for (const std::string& strategy : strategy_words()) EXPECT_GE(tried[strategy].size(), 4U) << strategy;
}

class WholeTable : public testing::TestWithParam<std::size_t> {};

TEST_P(WholeTable, DISABLED_HasTheDigestsOfDdpOnOneRank) {
  const Trained trained;
  std::set<std::string> digests;
  std::size_t n_runs = 0;
  for (Row row{GetParam()}; row.optimizer < optimizers.size(); ++row.optimizer)
    for (row.clip = 0; row.clip < clips.size(); ++row.clip)
      for (row.part = 0; row.part < parts.size(); ++row.part) {
        const std::string expected = trained.digest(row.words(), "ddp", {0});
        if (row.part == 0) digests.insert(expected);
        for (std::size_t i = 0; i < strategy_words().size(); ++i)
          for (const Nodes& nodes : placements) {
            trained.expect(expected, row.words() + words_of_units(i, n_runs + n_runs / placements.size()),
                           strategy_words()[i], nodes);
            ++n_runs;
          }
        if (testing::Test::HasFailure()) return;
      }
  EXPECT_EQ(digests.size(), optimizers.size() * clips.size()) << "a setting changes nothing";
  std::cout << n_runs << " runs\n";
}

INSTANTIATE_TEST_SUITE_P(Digests, WholeTable, testing::Range(std::size_t{0}, networks.size()),
                         [](const auto& row) { return std::string{networks[row.param].name}; });

}  // namespace
}  // namespace lockstep::support
