#include "unit/training/recipe/fixture.hpp"

namespace lockstep::training {
namespace {

TEST(MergedSettings, FlagsCountOverTheFileOverTheDefaults) {
  const ResolvedRecipe r = resolve(toy + "batch = 64\nlr = 0.5\n", {"--lr", "0.25"});
  EXPECT_EQ(r.recipe.accumulate, 1U);
  EXPECT_EQ(origin_of(r, "accumulate").note, "default");
  EXPECT_EQ(r.recipe.batch, 64U);
  EXPECT_EQ(origin_of(r, "batch").note, "recipe r.toml:2");
  EXPECT_EQ(r.recipe.lr, 0.25);
  EXPECT_EQ(origin_of(r, "lr").note, "flag --lr");
  EXPECT_EQ(r.recipe.name, "r");
}

TEST(MergedSettings, BooleansHaveAFlagForEachValue) {
  const std::string text = toy + "drop-last = true\n";
  EXPECT_TRUE(resolve(text).recipe.drop_last);
  const ResolvedRecipe r = resolve(text, {"--no-drop-last", "--deterministic"});
  EXPECT_FALSE(r.recipe.drop_last);
  EXPECT_TRUE(r.recipe.deterministic);
  EXPECT_EQ(origin_of(r, "drop-last").note, "flag --no-drop-last");
  EXPECT_TRUE(has(refused_text(text, {"--drop-last", "--no-drop-last"}), "drop-last is given twice"));
}

TEST(MergedSettings, NumbersAfterTheRecipeAreEpochsAndSaveEvery) {
  const ResolvedRecipe r = resolve(toy + "epochs = 3\n", {"50", "10"});
  EXPECT_EQ(r.recipe.epochs, 50U);
  EXPECT_EQ(r.recipe.save_every.value, 10);
  EXPECT_EQ(origin_of(r, "epochs").note, "first number after the recipe");
  EXPECT_EQ(resolve(toy, {"7", "--batch", "8"}).recipe.epochs, 7U);
  EXPECT_EQ(resolve(toy, {"--batch", "8", "7", "2"}).recipe.save_every.value, 2);
  EXPECT_TRUE(has(refused_text(toy, {"50", "10", "5"}), "unexpected argument '5'"));
  EXPECT_TRUE(
      has(refused_text(toy, {"fifty"}), "'fifty' is not a whole number (epochs, first number after the recipe)"));
  EXPECT_TRUE(has(refused_text(toy, {"50", "--epochs", "5"}), "epochs is given twice"));
}

TEST(MergedSettings, ArchIsAResNetByItsDepth) {
  const std::string resnet = "model = \"resnet18\"\n";
  EXPECT_EQ(resolve(resnet, {"--arch", "50"}).recipe.model, "resnet50");
  EXPECT_EQ(resolve(resnet, {"--arch", "resnet34"}).recipe.model, "resnet34");
  const std::string message = refused_text(resnet, {"--arch", "51"});
  EXPECT_TRUE(has(message, "unknown model 'resnet51' (--arch)")) << message;
  EXPECT_TRUE(has(message, "did you mean 'resnet50'?")) << message;
}

TEST(MergedSettings, KeysThatStandInsteadOfOneAnother) {
  const std::string file = toy + "epochs = 5\nsynthetic = true\nsynthetic-samples = 100\n";
  const Recipe by_samples = resolve(file, {"--samples", "1000"}).recipe;
  EXPECT_EQ(by_samples.samples, 1000U);
  EXPECT_EQ(by_samples.epochs, 0U);
  const Recipe from_set = resolve(file, {"--data", "d"}).recipe;
  EXPECT_FALSE(from_set.synthetic);
  EXPECT_EQ(from_set.data, "d");
  EXPECT_EQ(from_set.synthetic_samples, 0U);
  const Recipe from_seed = resolve(toy + "data = \"d\"\n", {"--synthetic"}).recipe;
  EXPECT_TRUE(from_seed.synthetic);
  EXPECT_EQ(from_seed.data, "");
  EXPECT_EQ(resolve(file, {"--synthetic-steps", "3"}).recipe.synthetic_samples, 0U);
  EXPECT_EQ(resolve(toy + "samples = 10\n", {"4"}).recipe.samples, 0U);
  EXPECT_TRUE(has(refused_text(file + "samples = 9\n"), "epochs and samples exclude each other"));
  EXPECT_TRUE(has(refused_text(file + "samples = 9\n"), "r.toml:2:10"));
  EXPECT_TRUE(has(refused_text(toy, {"--data", "d", "--synthetic"}), "--data"));
  EXPECT_EQ(resolve(toy + "synthetic = false\ndata = \"d\"\n").recipe.data, "d");
  EXPECT_EQ(resolve(toy + "data = \"d\"\nsynthetic = false\n").recipe.data, "d");
}

TEST(MergedSettings, WhatModelAndOptimizerImply) {
  EXPECT_EQ(resolve(toy).recipe.loss, nn::Loss::mse);
  EXPECT_EQ(resolve(toy).recipe.bn_group, 0U);
  const ResolvedRecipe r =
      resolve("model = \"resnet18\"\noptimizer = \"sgd\"\nbatch = 48\n", {"--optimizer", "adadelta"});
  EXPECT_EQ(r.recipe.loss, nn::Loss::cross_entropy);
  EXPECT_EQ(r.recipe.lr, 1);
  EXPECT_EQ(r.recipe.optimizer.eps, 1e-6);
  EXPECT_EQ(origin_of(r, "eps").note, "default for adadelta");
  EXPECT_EQ(r.recipe.bn_group, 48U);
  EXPECT_EQ(resolve("model = \"resnet18\"\nbatch = 48\naccumulate = 3\n").recipe.bn_group, 16U);
  EXPECT_EQ(resolve(toy, {"--optimizer", "adamw"}).recipe.optimizer.weight_decay, 0.01);
  EXPECT_EQ(resolve(toy + "weight-decay = 0.5\n", {"--optimizer", "adamw"}).recipe.optimizer.weight_decay, 0.5);
  EXPECT_EQ(resolve(toy, {"--optimizer", "lars"}).recipe.optimizer.momentum, 0.9);
  EXPECT_TRUE(has(refused_text("batch = 4\n"), "names no model (folder/r.toml)"));
}

TEST(MergedSettings, AnOptimizerHasItsOwnNumbersAndThoseGiven) {
  for (const optim::OptimizerKind kind : optim::all_optimizer_kinds)
    EXPECT_EQ(resolve(toy, {"--optimizer", std::string{name(kind)}}).recipe.optimizer, optim::default_spec(kind));
  EXPECT_EQ(resolve(toy + "momentum = 0.5\nnesterov = true\nweight-decay = 0.25\n").recipe.optimizer,
            (OptimizerSpec{.weight_decay = 0.25, .momentum = 0.5, .nesterov = true}));
  EXPECT_EQ(resolve(toy, {"--optimizer", "adam", "--beta1", "0.5", "--beta2", "0.75", "--eps", "0.1"}).recipe.optimizer,
            (OptimizerSpec{.kind = optim::OptimizerKind::adam, .beta1 = 0.5, .beta2 = 0.75, .eps = 0.1}));
}

TEST(MergedSettings, WhatHasNoEffectIsRefusedWhereItWasMeant) {
  const std::string message = refused_text(toy + "optimizer = \"adam\"\nmomentum = 0.9\n");
  EXPECT_TRUE(has(message, "momentum has no effect where optimizer is adam")) << message;
  EXPECT_TRUE(has(message, "r.toml:3:12")) << message;
  EXPECT_TRUE(has(message, "sgd, lars")) << message;
  EXPECT_TRUE(has(refused_text(toy, {"--cifar-stem"}), "(--cifar-stem)"));
  EXPECT_TRUE(has(refused_text(toy, {"--label-smoothing", "0.1"}), "where loss is mse"));
  EXPECT_TRUE(has(refused_text(toy, {"--synthetic-steps", "3"}), "where synthetic is false"));
}

TEST(MergedSettings, WhatALaterChoiceLeavesBehindGoesBackToItsDefault) {
  const std::string file = toy + "optimizer = \"sgd\"\nmomentum = 0.9\nschedule = \"step\"\nstep-size = 30\n";
  const ResolvedRecipe r = resolve(file, {"--optimizer", "adam", "--schedule", "cosine"});
  EXPECT_EQ(r.recipe.optimizer.momentum, 0);
  EXPECT_EQ(r.recipe.step_size, (Length{1}));
  EXPECT_FALSE(has(print_config(r), "momentum"));
  const std::string resnet = "model = \"resnet18\"\nclasses = 10\nlabel-smoothing = 0.1\nbn-group = 16\n";
  const Recipe other = resolve(resnet, {"--model", "movielens"}).recipe;
  EXPECT_EQ(other.label_smoothing, 0);
  EXPECT_EQ(other.bn_group, 0U);
  EXPECT_EQ(other.classes, 0U);
}

}  // namespace
}  // namespace lockstep::training
