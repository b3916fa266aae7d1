#include "data/write/pack_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "unit/io/temporary_folder.hpp"

namespace lockstep::data {
namespace {

using io::expect_error;

std::vector<std::uint64_t> samples_of(const OutputSplit& split) {
  std::vector<std::uint64_t> samples;
  while (samples.size() < split.selection.n()) {
    const Run run = split.run_at(samples.size(), 1000);
    for (std::uint64_t i = 0; i < run.n; ++i) samples.push_back(run.first + i);
  }
  return samples;
}

std::vector<std::string> files_of(const std::vector<ShardTask>& tasks) {
  std::vector<std::string> files;
  for (const ShardTask& task : tasks) files.push_back(task.place.file_name());
  return files;
}

TEST(PackPlan, KeepsSplitsAndOrder) {
  const PackPlan plan{{{"train", 25}, {"val", 3}, {"none", 0}}, {}, 10, {}};
  const auto tasks = plan.tasks();
  EXPECT_EQ(files_of(tasks),
            (std::vector<std::string>{"train-00000.h5", "train-00001.h5", "train-00002.h5", "val-00000.h5"}));
  EXPECT_EQ(tasks[2].place.first_id, 20);
  EXPECT_EQ(tasks[2].place.n_samples, 5);
  EXPECT_EQ(samples_of(plan.splits()[1]), (std::vector<std::uint64_t>{0, 1, 2}));
}

TEST(PackPlan, ValIsAChoiceOfTheSeed) {
  PackOptions options{.val = 0.2};
  const PackPlan plan{{{"all", 1003}}, options, 100, {}};
  auto train = samples_of(plan.splits()[0]), val = samples_of(plan.splits()[1]);
  EXPECT_EQ(plan.splits()[0].name, "train");
  EXPECT_EQ(plan.splits()[1].name, "val");
  EXPECT_EQ(val.size(), 201);
  EXPECT_TRUE(std::is_sorted(train.begin(), train.end()));
  EXPECT_TRUE(std::is_sorted(val.begin(), val.end()));
  EXPECT_GT(val.back() - val.front(), 800);
  options.seed = 2;
  EXPECT_NE(samples_of(PackPlan({{"all", 1003}}, options, 100, {}).splits()[1]), val);
  train.insert(train.end(), val.begin(), val.end());
  std::sort(train.begin(), train.end());
  for (std::uint64_t i = 0; i < 1003; ++i) ASSERT_EQ(train[i], i);
}

TEST(PackPlan, ShufflesWithinSplits) {
  const PackPlan plan{{{"train", 500}, {"val", 500}}, {.shuffle = true}, 100, {}};
  auto train = samples_of(plan.splits()[0]);
  EXPECT_FALSE(std::is_sorted(train.begin(), train.end()));
  EXPECT_NE(train, samples_of(plan.splits()[1]));
  std::sort(train.begin(), train.end());
  for (std::uint64_t i = 0; i < 500; ++i) ASSERT_EQ(train[i], i);
}

TEST(PackPlan, LeavesOutBadSamplesAndKeepsTheChoiceOfVal) {
  const PackOptions options{.val = 0.3};
  const PackPlan before{{{"all", 100}}, options, 10, {}};
  const std::uint64_t bad = samples_of(before.splits()[1])[4];
  const PackPlan after{{{"all", 100}}, options, 10, {{0, bad, "bad"}}};
  EXPECT_EQ(samples_of(after.splits()[0]), samples_of(before.splits()[0]));
  auto val = samples_of(before.splits()[1]);
  std::erase(val, bad);
  EXPECT_EQ(samples_of(after.splits()[1]), val);
}

std::vector<std::string> redone(std::uint64_t n, const std::vector<std::uint64_t>& indices, bool shuffle = false) {
  std::vector<BadRecord> bad;
  for (const std::uint64_t index : indices) bad.push_back({0, index, ""});
  const std::vector<SourceSplit> splits{{"a", n}, {"b", 10}};
  const PackOptions options{.shuffle = shuffle};
  return files_of(PackPlan{splits, options, 10, bad}.tasks_since(PackPlan{splits, options, 10, {}}, bad));
}

TEST(PackPlan, RepeatsOnlyWhatABadSampleChanges) {
  using Files = std::vector<std::string>;
  EXPECT_EQ(redone(35, {12}), (Files{"a-00001.h5", "a-00002.h5", "a-00003.h5"}));
  EXPECT_EQ(redone(35, {10, 9}), (Files{"a-00000.h5", "a-00001.h5", "a-00002.h5", "a-00003.h5"}));
  EXPECT_EQ(redone(35, {34}), (Files{"a-00003.h5"}));
  EXPECT_EQ(redone(31, {30}), Files{});
  EXPECT_EQ(redone(31, {29}), (Files{"a-00002.h5"}));
  EXPECT_EQ(redone(31, {29}, true), (Files{"a-00000.h5", "a-00001.h5", "a-00002.h5"}));
}

TEST(PackPlan, RefusesWhatDoesNotFit) {
  const auto plan = [](const std::vector<SourceSplit>& splits, double val) {
    return [=] { (void)PackPlan{splits, {.val = val}, 10, {}}; };
  };
  expect_error(plan({{"train", 10}, {"val", 10}}, 0.5), core::ExitCode::usage, {"2 splits of its own", "--val"});
  expect_error(plan({}, 0.5), core::ExitCode::usage, {"0 splits"});
  for (const double val : {-0.1, 1.0, 7.0})
    expect_error(plan({{"all", 10}}, val), core::ExitCode::usage, {"not a share", "--val"});
  expect_error(plan({{"all", 10}}, 0.01), core::ExitCode::usage, {"one split empty"});
  expect_error(plan({{"all", 10}}, 0.99), core::ExitCode::usage, {"one split empty"});
  for (const char* name : {"", "a/b", "..", "a b"})
    expect_error(plan({{name, 10}}, 0), core::ExitCode::usage, {"name of a split"});
  expect_error(plan({{"a", 10}, {"a", 10}}, 0), core::ExitCode::usage, {"each name once"});
}

}  // namespace
}  // namespace lockstep::data
