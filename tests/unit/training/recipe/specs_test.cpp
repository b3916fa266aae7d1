#include "training/recipe/specs.hpp"

#include "unit/training/recipe/fixture.hpp"

namespace lockstep::training {
namespace {

TEST(RecipeSpecs, TrainingEndsAfterAWholeBatch) {
  const auto goal = [](const Words& flags) { return goal_of(resolve(toy + "batch = 4\n", flags).recipe, 10, 3); };
  EXPECT_EQ(goal({"--epochs", "2"}).n_samples, 20U);
  EXPECT_EQ(goal({"--epochs", "2"}).n_steps, 6U);
  EXPECT_EQ(goal({"--samples", "21"}).n_samples, 24U);
  EXPECT_EQ(goal({"--samples", "21"}).n_steps, 7U);
  EXPECT_EQ(goal({"--samples", "21"}).n_epochs, 3U);
  EXPECT_EQ(goal({"--samples", "29"}).n_samples, 30U) << "the last batch of an epoch is smaller";
}

TEST(RecipeSpecs, ALimitOfStepsIsTheGoal) {
  const auto goal = [](const Words& flags) { return goal_of(resolve(toy + "batch = 4\n", flags).recipe, 10, 3); };
  const auto expect = [](const Goal& found, std::uint64_t n_epochs, std::uint64_t n_samples, std::uint64_t n_steps) {
    EXPECT_EQ(found.n_epochs, n_epochs);
    EXPECT_EQ(found.n_samples, n_samples);
    EXPECT_EQ(found.n_steps, n_steps);
  };
  expect(goal({"--samples", "29", "--max-steps", "2"}), 1, 8, 2);
  expect(goal({"--epochs", "50", "--max-steps", "3"}), 1, 10, 3);
  expect(goal({"--epochs", "50", "--max-steps", "4"}), 2, 14, 4);
  expect(goal({"--epochs", "2", "--max-steps", "100"}), 2, 20, 6);
}

TEST(RecipeSpecs, SchedulesCountSamples) {
  const Words flags{"--schedule", "multistep",   "--milestones",    "3,6",
                    "--warmup",   "500 samples", "--warmup-factor", "0.5"};
  const auto spec = schedule_spec(resolve(toy + "epochs = 9\nlr = 0.5\ngamma = 0.25\n", flags).recipe, 1000);
  EXPECT_EQ(spec.kind, optim::ScheduleKind::multistep);
  EXPECT_EQ(spec.milestones, (std::vector<std::uint64_t>{3000, 6000}));
  EXPECT_EQ(spec.warmup_samples, 500U);
  EXPECT_EQ(spec.warmup_factor, 0.5);
  EXPECT_EQ(spec.gamma, 0.25);
  EXPECT_EQ(spec.total_samples, 9000U);
  EXPECT_NO_THROW(check(spec));
  EXPECT_DOUBLE_EQ(learning_rate(spec, 0), 0.25);
  EXPECT_DOUBLE_EQ(learning_rate(spec, 2999), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(spec, 6000), 0.5 / 16);
}

TEST(RecipeSpecs, EverySchedulePassesItsCheck) {
  for (const optim::ScheduleKind kind : optim::all_schedule_kinds) {
    Words flags{"--schedule", std::string{name(kind)}};
    if (kind == optim::ScheduleKind::multistep) flags.insert(flags.end(), {"--milestones", "1"});
    EXPECT_NO_THROW(check(schedule_spec(resolve(toy, flags).recipe, 100))) << name(kind);
  }
}

TEST(RecipeSpecs, MaxStepsDoesNotChangeTheSchedule) {
  const Recipe r = resolve(toy, {"--schedule", "cosine", "--max-steps", "5"}).recipe;
  EXPECT_EQ(r.max_steps, 5U);
  EXPECT_EQ(schedule_spec(r, 1000).total_samples, 10000U);
  EXPECT_EQ(total_samples(resolve(toy, {"--samples", "123"}).recipe, 1000), 123U);
}

TEST(RecipeSpecs, Loader) {
  const Recipe r = resolve(toy + "batch = 8\nseed = 7\naugment = \"flip\"\nval-augment = \"resize:4,centercrop:4\"\n",
                           {"--order", "blocked", "--window-chunks", "5", "--cache", "none", "--drop-last"})
                       .recipe;
  const data::LoaderOptions train = loader_options(r, false, 4);
  EXPECT_EQ(train.global_batch, 8U);
  EXPECT_EQ(train.sampler.order, data::Order::blocked);
  EXPECT_EQ(train.sampler.window_chunks, 5U);
  EXPECT_EQ(train.sampler.seed, 7U);
  EXPECT_EQ(train.augment.seed, 7U);
  EXPECT_EQ(train.augment.steps.size(), 1U);
  EXPECT_EQ(train.cache, data::Cache::none);
  EXPECT_EQ(train.threads, -1);
  EXPECT_TRUE(train.drop_last);
  const data::LoaderOptions evaluation = loader_options(r, true, 4);
  EXPECT_EQ(evaluation.augment.steps.size(), 2U);
  EXPECT_TRUE(evaluation.is_evaluation);
  EXPECT_FALSE(evaluation.drop_last);
}

TEST(RecipeSpecs, LoaderKeepsGroupsTogether) {
  const auto expect = [](const Words& flags, bool is_evaluation, std::uint64_t unit, std::uint64_t n_together) {
    const std::string batch_of_32 = "model = \"resnet18\"\nclasses = 10\nbatch = 32\n";
    const data::LoaderOptions options = loader_options(resolve(batch_of_32, flags).recipe, is_evaluation, 4);
    EXPECT_EQ(options.unit, unit);
    EXPECT_EQ(options.n_together, n_together);
  };
  expect({"--bn-group", "8"}, false, 8, 1);
  expect({"--bn-group", "16"}, false, 16, 2);
  expect({}, false, 32, 4);
  expect({"--bn-group", "16"}, true, 1, 1);
  expect({"--bn-group", "8", "--deterministic"}, false, 1, 1);
  EXPECT_EQ(loader_options(resolve(toy).recipe, false, 4).unit, 1U);
}

}  // namespace
}  // namespace lockstep::training
