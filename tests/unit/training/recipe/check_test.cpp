#include "unit/training/recipe/fixture.hpp"

namespace lockstep::training {
namespace {

const std::string residual = "model = \"resnet18\"\n";

TEST(RecipeCheck, RangesOfNumbers) {
  EXPECT_TRUE(
      has(refused_text(toy, {"--batch", "0"}), "0 is out of range (--batch)\n  expected: a whole number from 1 to "));
  EXPECT_TRUE(has(refused_text(toy, {"--lr", "0"}), "expected: a number above 0"));
  EXPECT_TRUE(has(refused_text(toy, {"--lr", "-0.1"}), "-0.1 is out of range"));
  EXPECT_TRUE(has(refused_text(toy, {"--lr", "inf"}), "inf is out of range"));
  EXPECT_TRUE(has(refused_text(toy, {"--lr", "nan"}), "nan is out of range"));
  EXPECT_TRUE(has(refused_text(toy + "lr = nan"), "nan is out of range"));
  EXPECT_TRUE(has(refused_text(toy + "lr = -inf"), "-inf is out of range"));
  EXPECT_TRUE(has(refused_text(toy, {"--lr", "1e999"}), "1e999 is out of range"));
  EXPECT_TRUE(has(refused_text(toy, {"--lr", "1x"}), "'1x' is not a number"));
  EXPECT_TRUE(has(refused_text(toy, {"--momentum", "1"}), "expected: a number from 0 to below 1"));
  EXPECT_TRUE(has(refused_text(residual, {"--label-smoothing", "1"}), "out of range"));
  EXPECT_TRUE(has(refused_text(toy, {"--epochs", "0"}), "a whole number from 1 to 9007199254740992"));
  EXPECT_TRUE(has(refused_text(toy, {"--batch", "0"}), "a whole number from 1 to 4294967295"));
  EXPECT_TRUE(has(refused_text(toy, {"--epochs", "-3"}), "-3 is out of range"));
  EXPECT_TRUE(has(refused_text(toy, {"--epochs", "2.5"}), "'2.5' is not a whole number"));
  EXPECT_TRUE(has(refused_text(toy, {"--epochs", "99999999999999999999"}), "out of range"));
  EXPECT_TRUE(has(refused_text(toy + "seed = -1"), "-1 is out of range"));
  EXPECT_TRUE(has(refused_text(toy, {"--loader-threads", "-1"}), "from 0 to 256"));
  EXPECT_TRUE(has(refused_text(toy, {"--unit-params", "0"}), "0 is out of range"));
  EXPECT_TRUE(has(refused_text(toy + "unit-params = 1.5"), "a whole number from 1 to "));
  EXPECT_TRUE(has(refused_text(toy, {"--schedule", "step", "--gamma", "1.5"}), "a number above 0, at most 1"));
}

TEST(RecipeCheck, WordsHaveNearMisses) {
  EXPECT_TRUE(has(refused_text("model = \"resnet-50\""), "did you mean 'resnet50'?"));
  EXPECT_TRUE(has(refused_text(toy, {"--optimizer", "sdg"}),
                  "unknown optimizer 'sdg' (--optimizer)\n  expected: one of sgd, "));
  EXPECT_TRUE(has(refused_text(toy, {"--optimizer", "sdg"}), "did you mean 'sgd'?"));
  EXPECT_TRUE(has(refused_text(toy, {"--schedule", "cosin"}), "did you mean 'cosine'?"));
  EXPECT_TRUE(has(refused_text(toy, {"--order", "keyd"}), "did you mean 'keyed'?"));
  EXPECT_TRUE(has(refused_text(toy, {"--precision", "bf61"}), "did you mean 'bf16'?"));
  EXPECT_TRUE(has(refused_text(toy, {"--strategy", "dpd"}), "did you mean 'ddp'?"));
  EXPECT_TRUE(has(refused_text(toy, {"--strategy", "zero3"}), "zero2"));
  EXPECT_EQ(resolve(toy, {"--strategy", "zero1"}).recipe.strategy, Strategy::zero1);
  EXPECT_FALSE(resolve(toy, {"--strategy", "auto"}).recipe.strategy) << "decided by the memory of the machine";
  for (const parallel::Strategy strategy : parallel::all_strategies)
    EXPECT_TRUE(has(refused_text(toy, {"--strategy", "dpp"}), std::string{name(strategy)}));
  EXPECT_TRUE(has(refused_text(toy, {"--strategy", "dpp"}), "auto"));
  EXPECT_TRUE(has(refused_text(toy, {"--cache", "nod"}), "did you mean 'node'?"));
  EXPECT_TRUE(has(refused_text(toy, {"--augment", "flop"}), "did you mean 'flip'?"));
  EXPECT_TRUE(has(refused_text(toy + "augment = \"crop\"\n"), "augment, folder/r.toml:2:11"));
}

TEST(RecipeCheck, AnUnknownFlagHasANearMiss) {
  const std::string message = refused_text(toy, {"--bacth", "3"});
  EXPECT_TRUE(has(message, "unknown flag '--bacth'")) << message;
  EXPECT_TRUE(has(message, "--batch")) << message;
}

TEST(RecipeCheck, GroupsAndPartsDivideTheBatch) {
  const std::string message = refused_text(residual + "batch = 64\nbn-group = 48\n");
  EXPECT_TRUE(has(message, "groups of 48 samples do not divide the batch of 64 (bn-group, folder/r.toml:3:12)"))
      << message;
  EXPECT_TRUE(has(message, "--bn-group 32, or --batch 96")) << message;
  EXPECT_EQ(resolve(residual, {"--bn-group", "48", "--batch", "96"}).recipe.bn_group, 48U);

  EXPECT_TRUE(has(refused_text(toy, {"--batch", "10", "--accumulate", "4"}), "--accumulate 2"));
  EXPECT_TRUE(has(refused_text(residual, {"--batch", "64", "--accumulate", "4", "--bn-group", "32"}), "in 4 parts"));
  EXPECT_TRUE(has(refused_text(toy, {"--batch", "2", "--accumulate", "4"}), "--accumulate 2"));
}

TEST(RecipeCheck, ADivisorIsSuggestedAtOnceHoweverLargeTheBatch) {
  EXPECT_TRUE(has(refused_text(residual, {"--batch", "4294967291", "--bn-group", "4294967290"}), "--bn-group 1, "));
  EXPECT_TRUE(has(refused_text(residual, {"--batch", "100", "--bn-group", "49"}), "--bn-group 25, "));
}

TEST(RecipeCheck, LanesAreAPowerOfTwoThatDividesTheBatch) {
  EXPECT_TRUE(has(refused_text(toy, {"--lanes", "6"}), "--lanes 4"));
  EXPECT_EQ(resolve(toy, {"--batch", "30"}).recipe.lanes, 4U);
  EXPECT_TRUE(has(refused_text(toy, {"--batch", "30", "--deterministic"}), "--lanes 2, or --batch 32"));
  EXPECT_TRUE(has(refused_text(residual, {"--batch", "64", "--bn-group", "32", "--deterministic"}), "in 4 lanes"));
  EXPECT_TRUE(resolve(residual, {"--batch", "64", "--bn-group", "16", "--deterministic"}).recipe.deterministic);
}

TEST(RecipeCheck, WhatFollowsTheFixIsAccepted) {
  EXPECT_NO_THROW(static_cast<void>(resolve(toy, {"--batch", "32", "--deterministic"})));
  EXPECT_NO_THROW(static_cast<void>(resolve(residual, {"--bn-group", "32", "--batch", "64"})));
}

TEST(RecipeCheck, TheLossMustBeAbleToTrainTheModel) {
  const std::string message = refused_text(toy, {"--loss", "cross_entropy"});
  EXPECT_TRUE(has(message, "the loss cross_entropy does not fit the model toy (--loss)")) << message;
  EXPECT_TRUE(has(refused_text(residual, {"--loss", "mse"}), "cross_entropy or nll, because its outputs are classes"));
  EXPECT_TRUE(has(refused_text(toy, {"--loss", "nll"}), "mse, because its outputs are numbers"));
  EXPECT_EQ(resolve(residual, {"--loss", "nll"}).recipe.loss, nn::Loss::nll);
  EXPECT_TRUE(has(refused_text(residual, {"--loss", "nll", "--label-smoothing", "0.1"}), "label-smoothing"));
  EXPECT_EQ(resolve(toy, {"--loss", "mse"}).recipe.loss, nn::Loss::mse);
}

TEST(RecipeCheck, OptimizerAndSchedule) {
  EXPECT_TRUE(has(refused_text(toy, {"--nesterov"}), "momentum above 0"));
  EXPECT_TRUE(has(refused_text(toy, {"--nesterov", "--momentum", "0.9", "--dampening", "0.1"}), "dampening 0"));
  EXPECT_TRUE(resolve(toy, {"--nesterov", "--momentum", "0.9"}).recipe.optimizer.nesterov);
  EXPECT_TRUE(has(refused_text(toy, {"--schedule", "cosine", "--min-lr", "1"}), "at most lr"));
  EXPECT_TRUE(has(refused_text(toy, {"--schedule", "multistep"}), "no milestones"));
  EXPECT_TRUE(has(refused_text(toy, {"--schedule", "multistep", "--milestones", "60,30"}), "do not ascend"));
  EXPECT_TRUE(has(refused_text(toy, {"--schedule", "multistep", "--milestones", "3,60 samples"}), "do not ascend"));
  EXPECT_TRUE(has(refused_text(toy, {"--schedule", "multistep", "--milestones", ""}), "is not a length"));
  EXPECT_TRUE(has(refused_text(toy, {"--schedule", "cosine", "--warmup", "10"}), "less than 10 epochs"));
  EXPECT_EQ(resolve(toy, {"--warmup", "10"}).recipe.warmup, (Length{10}));
}

TEST(RecipeCheck, LengthsAreEpochsOrSamples) {
  EXPECT_EQ(resolve(toy, {"--warmup", "2.5"}).recipe.warmup, (Length{2.5}));
  EXPECT_EQ(resolve(toy, {"--warmup", "1 epoch"}).recipe.warmup, (Length{1}));
  EXPECT_EQ(resolve(toy, {"--warmup", "5epochs"}).recipe.warmup, (Length{5}));
  EXPECT_EQ(resolve(toy, {"--warmup", "300samples"}).recipe.warmup, (Length{300, Length::Unit::samples}));
  EXPECT_TRUE(has(refused_text(toy, {"--warmup", "5 steps"}), "'5 steps' is not a length"));
  EXPECT_TRUE(has(refused_text(toy, {"--warmup", "5 s"}), "'5 s' is not a length"));
  EXPECT_EQ(resolve(toy, {"--save-every", "90 s"}).recipe.save_every, (Length{90, Length::Unit::seconds}));
  EXPECT_EQ(resolve(toy, {"--save-every", "0.5h"}).recipe.save_every, (Length{1800, Length::Unit::seconds}));
  EXPECT_EQ(Length({1800, Length::Unit::seconds}).samples(100), 0);
  EXPECT_TRUE(has(refused_text(toy, {"--warmup", "1.5 samples"}), "not a whole number"));
  EXPECT_TRUE(has(refused_text(toy, {"--warmup", "nan"}), "out of range"));
  EXPECT_TRUE(has(refused_text(toy, {"--warmup", "x"}), "'x' is not a length"));
  EXPECT_EQ((Length{1.5}.samples(11)), 17U);
  EXPECT_EQ((Length{300, Length::Unit::samples}.samples(11)), 300U);
}

TEST(RecipeCheck, WithoutDataThereIsNothingToTrainOn) {
  EXPECT_TRUE(has(refused([] { require_data(resolve(toy).recipe); }), "r has no data to train on"));
  EXPECT_NO_THROW(require_data(resolve(toy, {"--data", "d"}).recipe));
  EXPECT_NO_THROW(require_data(resolve(toy, {"--synthetic"}).recipe));
}

}  // namespace
}  // namespace lockstep::training
