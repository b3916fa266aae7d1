#include "training/train/state.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <vector>

#include "core/error.hpp"
#include "io/digest.hpp"

namespace lockstep::training {
namespace {

TEST(RunState, ComesBackFromItsText) {
  RunState state{
      .epoch = 3, .n_steps = 1000, .samples_seen = 32'000, .learning_rate = 0.1, .ledger = ~std::uint64_t{0}};
  state.of_epoch = {.loss = 1.0 / 3, .n_samples = 320, .n_top1 = 7, .n_steps = 10};
  for (int i = 0; i < 5000; ++i) state.add_loss(1.0 / (1 + i));
  for (const bool has_epoch : {false, true}) {
    if (has_epoch) {
      state.epoch_loss = 0.1 + 0.2;
      state.loss_scale = {.value = 0.1F, .n_good = 7, .n_updates = 998};
    }
    const RunState again = parse_run_state(to_json(state));
    EXPECT_EQ(to_json(again), to_json(state));
    EXPECT_EQ(again.n_agreed, 1000u);
    EXPECT_EQ(again.ledger, ~std::uint64_t{0});
    EXPECT_EQ(again.of_epoch.loss, 1.0 / 3);
    EXPECT_EQ(again.loss_scale ? again.loss_scale->value : 0, has_epoch ? 0.1F : 0);
    EXPECT_EQ(again.loss_scale ? again.loss_scale->n_updates : 0, has_epoch ? 998u : 0u);
    EXPECT_EQ(std::isnan(again.epoch_loss), !has_epoch);
    EXPECT_EQ(again.digest_of_losses(), state.digest_of_losses());
  }
  EXPECT_THROW(static_cast<void>(parse_run_state("{}")), core::Error);
}

TEST(RunState, LossesHaveTheDigestOfTheirBytesAndOneThatGoesOn) {
  RunState whole;
  std::vector<double> losses;
  for (int i = 0; i < 4096; ++i) {
    losses.push_back(std::sqrt(i));
    whole.add_loss(losses.back());
  }
  EXPECT_EQ(whole.digest_of_losses(), io::digest_of(std::as_bytes(std::span{losses})));
  for (int i = 0; i < 9000; ++i) {
    RunState resumed = i % 1000 == 0 ? parse_run_state(to_json(whole)) : RunState{};
    whole.add_loss(i);
    EXPECT_LE(whole.losses.size(), 4096 * sizeof(double));
    if (i % 1000 != 0) continue;
    resumed.add_loss(i);
    EXPECT_EQ(resumed.digest_of_losses(), whole.digest_of_losses());
  }
}

TEST(RunState, TheBestEvaluationIsKept) {
  RunState state;
  const auto evaluate = [&](std::uint64_t n_samples, std::uint64_t n_top1, double loss) {
    ++state.n_steps;
    state.note_evaluation({.n_samples = n_samples, .loss = loss, .n_top1 = n_top1});
    state = parse_run_state(to_json(state));
    return state.best ? state.best->n_steps : 0;
  };
  EXPECT_EQ(evaluate(10, 3, std::nan("")), 0u);
  EXPECT_EQ(evaluate(10, 3, 0.5), 2u);
  EXPECT_EQ(evaluate(10, 3, 0.5), 2u) << "the first of equals";
  EXPECT_EQ(evaluate(10, 3, 0.4), 4u);
  EXPECT_EQ(evaluate(10, 2, 0.1), 4u);
  EXPECT_EQ(evaluate(10, 4, 0.9), 6u);
  EXPECT_EQ(evaluate(10, 5, std::nan("")), 6u);
  EXPECT_EQ(evaluate(20, 1, 2.0), 8u) << "of another split";
}

}  // namespace
}  // namespace lockstep::training
