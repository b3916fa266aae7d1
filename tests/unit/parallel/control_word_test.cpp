#include "parallel/control_word.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "comm/transport_threads.hpp"
#include "unit/parallel/ranks.hpp"

namespace lockstep::parallel {
namespace {

/// The agreement of every rank on one report each.
std::vector<StepAgreement> agree(const support::Nodes& nodes, const std::function<StepReport(int)>& report,
                                 bool is_deterministic = false) {
  std::vector<StepAgreement> agreements(nodes.size());
  comm::run_as_threads(nodes, [&](comm::Transport& world) {
    ControlWord word{world, is_deterministic};
    EXPECT_FALSE(word.finish());
    EXPECT_FALSE(word.exchange(report(world.rank())));
    const auto agreement = word.finish();
    ASSERT_TRUE(agreement);
    agreements[static_cast<std::size_t>(world.rank())] = *agreement;
    EXPECT_FALSE(word.finish());
  });
  return agreements;
}

template <class Check>
void for_each_agreement(const std::function<StepReport(int)>& report, Check check) {
  for (const support::Nodes& nodes : support::placements())
    for (const bool is_deterministic : {false, true})
      for (const StepAgreement& agreement : agree(nodes, report, is_deterministic)) {
        SCOPED_TRACE(support::describe(nodes));
        check(agreement, static_cast<int>(nodes.size()));
      }
}

TEST(ControlWord, SumsWhatIsCounted) {
  const auto report = [](int rank) {
    const auto r = static_cast<std::uint64_t>(rank);
    return StepReport{.loss = 0.5 + rank,
                      .n = 10 + r,
                      .n_top1 = r,
                      .n_top5 = 2 * r + 1,
                      .ledger = 0xffff'ffff'ffff'fff0 + r * 0x1'2345'6789};
  };
  for_each_agreement(report, [](const StepAgreement& agreement, int n_ranks) {
    const auto p = static_cast<std::uint64_t>(n_ranks);
    const std::uint64_t pairs = p * (p - 1) / 2;
    EXPECT_EQ(agreement.loss, 0.5 * n_ranks + static_cast<double>(pairs));
    EXPECT_EQ(agreement.n, 10 * p + pairs);
    EXPECT_EQ(agreement.n_top1, pairs);
    EXPECT_EQ(agreement.n_top5, 2 * pairs + p);
    EXPECT_EQ(agreement.ledger, 0xffff'ffff'ffff'fff0 * p + pairs * 0x1'2345'6789);  // modulo 2^64
    EXPECT_FALSE(agreement.stop);
    EXPECT_FALSE(agreement.save);
    EXPECT_FALSE(agreement.not_finite);
    EXPECT_TRUE(agreement.replicas_agree);
  });
}

TEST(ControlWord, OneRankIsEnoughForAFlag) {
  for_each_agreement([](int rank) { return StepReport{.stop = rank == 0}; },
                     [](const StepAgreement& agreement, int) {
                       EXPECT_TRUE(agreement.stop);
                       EXPECT_FALSE(agreement.save);
                     });
  for_each_agreement([](int rank) { return StepReport{.save = rank == 1}; },
                     [](const StepAgreement& agreement, int n_ranks) {
                       EXPECT_EQ(agreement.save, n_ranks > 1);
                       EXPECT_FALSE(agreement.stop);
                     });
}

TEST(ControlWord, TellsThatParametersHaveChanged) {
  for_each_agreement([](int rank) { return StepReport{.changed = rank == 1}; },
                     [](const StepAgreement& agreement, int n_ranks) { EXPECT_EQ(agreement.changed, n_ranks > 1); });
}

TEST(ControlWord, NamesTheLowestRankThatIsNotFinite) {
  const auto report = [](int rank) {
    StepReport mine{.loss = rank > 0 ? std::numeric_limits<double>::quiet_NaN() : 1};
    mine.not_finite = rank > 0;
    return mine;
  };
  for_each_agreement(report, [](const StepAgreement& agreement, int n_ranks) {
    EXPECT_EQ(std::isnan(agreement.loss), n_ranks > 1);
    ASSERT_EQ(agreement.not_finite.has_value(), n_ranks > 1);
    if (n_ranks == 1) return;
    EXPECT_EQ(agreement.not_finite, 1);
  });
}

TEST(ControlWord, PrefersARankThatFoundAParameter) {
  const auto report = [](int rank) { return StepReport{.not_finite = true, .found_parameter = rank >= 2}; };
  for_each_agreement(report, [](const StepAgreement& agreement, int n_ranks) {
    EXPECT_EQ(agreement.not_finite, n_ranks > 2 ? 2 : 0);
  });
}

TEST(ControlWord, ReplicasAgreeOnlyIfAllHashesAreEqual) {
  const auto agreed = [](const std::vector<std::optional<std::uint32_t>>& hashes) {
    const auto agreements = agree(support::Nodes(hashes.size()), [&](int rank) {
      return StepReport{.replica = hashes[static_cast<std::size_t>(rank)]};
    });
    for (const StepAgreement& agreement : agreements)
      EXPECT_EQ(agreement.replicas_agree, agreements.front().replicas_agree);
    return agreements.front().replicas_agree;
  };
  EXPECT_TRUE(agreed({0xdead'beef}));
  EXPECT_TRUE(agreed({0xffff'ffff, 0xffff'ffff, std::nullopt, 0xffff'ffff}));
  EXPECT_FALSE(agreed({0xdead'beef, 0xdead'beee}));
  EXPECT_FALSE(agreed({0xdead'beef, std::nullopt, 0xdeac'beef}));
  EXPECT_FALSE(agreed({0, 0, 1}));
  EXPECT_FALSE(agreed({2, 1, 3}));  // the mean is among them, too
  for (int bit = 0; bit < 32; ++bit) EXPECT_FALSE(agreed({77, 77 ^ (1U << bit), 77})) << bit;
}

TEST(ControlWord, TellsOfTheStepBefore) {
  comm::run_as_threads({0, 0, 1}, [](comm::Transport& world) {
    ControlWord word{world, false};
    for (std::uint64_t step = 0; step < 20; ++step) {
      const auto before = word.exchange({.n = step});
      ASSERT_EQ(before.has_value(), step > 0);
      if (before) {
        EXPECT_EQ(before->n, 3 * (step - 1));
      }
    }
    EXPECT_EQ(word.finish()->n, 57U);
  });
}

}  // namespace
}  // namespace lockstep::parallel
