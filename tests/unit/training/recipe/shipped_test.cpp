// The recipes of share/recipes have the tutorials' settings.
#include "data/augment/augment.hpp"
#include "training/recipe/find.hpp"
#include "training/recipe/specs.hpp"
#include "unit/training/recipe/fixture.hpp"

namespace lockstep::training {
namespace {

TEST(RecipeShipped, AllAreThereAndResolve) {
  Words names;
  for (const ShippedRecipe& recipe : list_recipes()) {
    names.push_back(recipe.name);
    EXPECT_EQ(shipped({recipe.name}).recipe.name, recipe.name);
    EXPECT_GT(summary_of(read_recipe(recipe.path)).size(), 20U) << recipe.name;
    EXPECT_TRUE(has(recipe_help(), summary_of(read_recipe(recipe.path))));
  }
  EXPECT_EQ(names, (Words{"cifar_resnet18", "digits", "mnist_cnn", "movielens", "resnet50_synthetic",
                          "tinyimagenet_resnet50", "toy"}));
}

TEST(RecipeShipped, NoneHasDataOfItsOwn) {
  for (const ShippedRecipe& recipe : list_recipes()) {
    EXPECT_EQ(shipped({recipe.name}).recipe.data, "");
    EXPECT_NO_THROW(require_data(shipped({recipe.name, "--data", "d"}).recipe));
    EXPECT_NO_THROW(require_data(shipped({recipe.name, "--synthetic"}).recipe));
  }
}

TEST(RecipeShipped, Toy) {
  const Recipe r = shipped({"toy", "50", "10"}).recipe;
  EXPECT_EQ(r.epochs, 50U);
  EXPECT_EQ(r.save_every.value, 10);
  EXPECT_EQ(r.batch, 32U);
  EXPECT_EQ(r.lr, 1e-3);
  EXPECT_EQ(r.optimizer.momentum, 0);
  EXPECT_EQ(r.loss, nn::Loss::mse);
  EXPECT_EQ(synthesizer_of(r).name, "toy");
  EXPECT_EQ(synth_options(r).samples, 2048U);
}

TEST(RecipeShipped, MnistCnn) {
  const Recipe r = shipped({"mnist_cnn"}).recipe;
  EXPECT_EQ(r.batch, 64U);
  EXPECT_EQ(r.epochs, 14U);
  EXPECT_TRUE(r.dropout);
  const optim::OptimizerSpec optimizer = r.optimizer;
  EXPECT_EQ(optimizer.kind, optim::OptimizerKind::adadelta);
  EXPECT_EQ(optimizer.rho, 0.9);
  EXPECT_EQ(optimizer.eps, 1e-6);
  const optim::ScheduleSpec schedule = schedule_spec(r, 60000);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 59999), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 120000), 0.49);
  const auto steps = data::parse_augment(r.augment, "");
  EXPECT_EQ(steps.at(0).mean, (std::vector<double>{0.1307}));
  EXPECT_EQ(steps.at(0).stddev, (std::vector<double>{0.3081}));
  EXPECT_EQ(r.augment, r.val_augment);
}

TEST(RecipeShipped, Digits) {
  const Recipe r = shipped({"digits", "--deterministic"}).recipe;
  EXPECT_EQ(r.model, "mnist_cnn");
  EXPECT_EQ(synthesizer_of(r).name, "digits");
  EXPECT_EQ(r.lanes, 4U);
}

TEST(RecipeShipped, CifarResnet18) {
  const Recipe r = shipped({"cifar_resnet18"}).recipe;
  EXPECT_TRUE(r.cifar_stem);
  EXPECT_EQ(r.classes, 10U);
  EXPECT_EQ(r.batch, 64U);
  EXPECT_EQ(r.epochs, 10U);
  EXPECT_EQ(r.lr, 0.01);
  EXPECT_EQ(r.optimizer.momentum, 0.9);
  EXPECT_EQ(r.optimizer.weight_decay, 5e-4);
  EXPECT_EQ(data::parse_augment(r.augment, "").size(), 3U);
  for (const char* depth : {"34", "50", "101", "152"})
    EXPECT_EQ(shipped({"cifar_resnet18", "--arch", depth}).recipe.model, std::string{"resnet"} + depth);
  EXPECT_EQ(shipped({"cifar_resnet18", "--batch", "256", "--bn-group", "64"}).recipe.bn_group, 64U);
  EXPECT_NO_THROW(static_cast<void>(shipped({"cifar_resnet18", "--deterministic"})));
}

TEST(RecipeShipped, Resnet50Synthetic) {
  const Recipe r = shipped({"resnet50_synthetic"}).recipe;
  EXPECT_EQ(r.batch, 256U);
  EXPECT_EQ(r.lr, 0.1);
  EXPECT_EQ(r.optimizer.momentum, 0.9);
  EXPECT_EQ(r.optimizer.weight_decay, 1e-5);
  EXPECT_EQ(r.classes, 1000U);
  const data::SynthOptions synth = synth_options(r);
  EXPECT_EQ(synth.samples, 20U * 256U);
  EXPECT_EQ(synth.height, 224U);
  EXPECT_EQ(synth.width, 224U);
  EXPECT_EQ(synth.classes, 1000U);
  EXPECT_EQ(synth_options(shipped({"resnet50_synthetic", "--batch", "64"}).recipe).samples, 20U * 64U);
}

TEST(RecipeShipped, TinyImageNetResnet50) {
  const Recipe r = shipped({"tinyimagenet_resnet50"}).recipe;
  EXPECT_EQ(r.classes, 200U);
  EXPECT_EQ(r.batch, 128U);
  EXPECT_EQ(r.epochs, 30U);
  EXPECT_EQ(r.optimizer.weight_decay, 1e-4);
  const optim::ScheduleSpec schedule = schedule_spec(r, 100000);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 2999999), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 3000000), 0.01);
  const auto steps = data::parse_augment(r.val_augment, "");
  EXPECT_EQ(steps.at(0).height, 256U);
  EXPECT_EQ(steps.at(1).height, 224U);
}

TEST(RecipeShipped, MovieLens) {
  const Recipe r = shipped({"movielens"}).recipe;
  EXPECT_EQ(r.users, 0U) << "as many as the set has";
  EXPECT_EQ(r.items, 0U);
  EXPECT_EQ(r.batch, 256U);
  EXPECT_EQ(r.epochs, 10U);
  EXPECT_EQ(r.loss, nn::Loss::mse);
  EXPECT_EQ(r.optimizer.kind, optim::OptimizerKind::adamw);
  EXPECT_EQ(r.optimizer.weight_decay, 0.01);
  EXPECT_EQ(synth_options(r).users, 610U);
  EXPECT_EQ(synth_options(r).items, 9724U);
}

}  // namespace
}  // namespace lockstep::training
