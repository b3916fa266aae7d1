// Checkpoints of lockstep train, and resuming from them: the result equals that of an uninterrupted run.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <set>
#include <span>
#include <vector>

#include "core/flags.hpp"
#include "parallel/strategy.hpp"
#include "ranks/drawn_recipe.hpp"
#include "support/draws.hpp"
#include "support/lockstep_program.hpp"
#include "support/sanitized.hpp"
#include "support/set_clock.hpp"
#include "unit/io/temporary_folder.hpp"

namespace lockstep::support {
namespace {

namespace fs = std::filesystem;
using io::TemporaryFolder;

std::vector<int> on_one_node(int n_ranks) { return std::vector<int>(static_cast<std::size_t>(n_ranks)); }

/// `lockstep` with `words` after `arguments`, which must succeed.
Ended run(std::vector<std::string> arguments, const std::string& words, const std::vector<int>& nodes = {0}) {
  for (std::string& word : words_of(words)) arguments.push_back(std::move(word));
  Ended ended = run_lockstep(arguments, nodes);
  EXPECT_EQ(ended.exit_code, 0) << ended.err << ended.out;
  return ended;
}

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  if (fs::exists(folder))
    for (const auto& entry : fs::directory_iterator{folder}) names.insert(entry.path().filename().string());
  return names;
}

using Complaints = std::vector<std::string>;

TEST(DrawnRecipe, EveryKeyIsInTheTable) { EXPECT_EQ(complaints_about(drawn_keys()), Complaints{}); }

// So that the test above can fail.
TEST(DrawnRecipe, AKeyThatIsTakenOutOfTheTableIsMissed) {
  for (std::size_t i = 0; i < drawn_keys().size(); ++i) {
    std::vector<DrawnKey> keys = drawn_keys();
    const std::string key = keys[i].key;
    keys.erase(keys.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_EQ(complaints_about(keys), Complaints{key + " is a key that no test of resuming draws"});
    keys.push_back({key, {}});
    EXPECT_EQ(complaints_about(keys), Complaints{key + " has neither values nor a reason, or has both"});
    keys.back() = {key, {"1"}, "a reason"};
    EXPECT_EQ(complaints_about(keys), Complaints{key + " has neither values nor a reason, or has both"});
  }
  std::vector<DrawnKey> keys = drawn_keys();
  keys.push_back(keys.front());
  keys.push_back({"momentun", {"0"}});
  EXPECT_EQ(complaints_about(keys), (Complaints{"name is there twice", "momentun is no key"}));
}

const std::vector<std::string> digits =
    words_of("train digits --synthetic-samples 64 --batch 8 --val-split= --deterministic --threads 1 --digest");

// Within an epoch, on any number of ranks before and after.
TEST(Resume, OnAnyRanksGivesTheBitsOfTheWhole) {
  const TemporaryFolder folder;
  const std::string whole = run(digits, "--epochs 3 --run-dir " + folder / "whole").line("digest");
  ASSERT_FALSE(whole.empty());
  EXPECT_TRUE(names_in(folder / "whole/checkpoints").empty()) << "checkpoints that nobody asked for";
  const std::vector<int> counts = is_slow ? std::vector{2, 4} : std::vector{1, 2, 4};
  for (const int n : counts) {
    const std::string part = folder / ("part" + std::to_string(n));
    run(digits, "--max-steps 13 --save-every=40samples --keep 2 --run-dir " + part, on_one_node(n));
    EXPECT_EQ(names_in(part + "/checkpoints"), (std::set<std::string>{"step-000000010", "step-000000013"}));
    for (const int m : counts) {
      const std::string rest = part + "-" + std::to_string(m);
      const Ended ended = run(digits, "--epochs 3 --resume " + part + " --run-dir " + rest, on_one_node(m));
      EXPECT_EQ(ended.line("digest"), whole) << n << " ranks, then " << m;
      EXPECT_NE(ended.err.find("resumed epoch 2, after step 13, from " + part + "/checkpoints/step-000000013"),
                std::string::npos)
          << ended.err;
    }
  }
}

// An evaluation uses the mean of batch normalization's running statistics, and changes none.
TEST(Resume, EvaluationsChangeNothingThatIsLearned) {
  const TemporaryFolder folder;
  const std::string set = folder / "set";
  run(words_of("shard synth images --samples 60 --height 8 --width 8 --channels 3 --classes 4 --out"), set);
  const std::vector<std::string> resnet = words_of(
      "train cifar_resnet18 --no-synthetic --classes 4 --batch 16 --bn-group 2 --augment normalize:0.4:0.2 "
      "--val-augment normalize:0.4:0.2 --drop-last --deterministic --threads 1 --digest --data " +
      set);
  const std::string whole = run(resnet, "--epochs 2 --evaluate-every 0 --run-dir " + folder / "whole").line("digest");
  ASSERT_FALSE(whole.empty());
  EXPECT_EQ(run(resnet, "--epochs 2 --evaluate-every 1 --run-dir " + folder / "each", on_one_node(2)).line("digest"),
            whole);
  run(resnet, "--epochs 1 --save-every 1 --run-dir " + folder / "part", on_one_node(2));
  EXPECT_EQ(run(resnet, "--epochs 2 --resume auto --run-dir " + folder / "part").line("digest"), whole);
}

// The rest of the epoch comes in another order, so not every sample occurs once in it.
TEST(Resume, AnywayTakesAnotherOrderButNotAnotherNetwork) {
  const TemporaryFolder folder;
  run(digits, "--max-steps 13 --save-every=40samples --run-dir " + folder / "part");
  const std::string other = "--epochs 3 --resume-anyway --resume " + folder / "part" + " --run-dir " + folder / "other";
  run(digits, other + " --seed 9 --order sequential");
  for (const std::string key : {"--model toy", "--optimizer adam"}) {
    std::vector<std::string> arguments = digits;
    for (std::string& word : words_of(other + key.substr(2, 3) + " " + key)) arguments.push_back(std::move(word));
    const Ended refused = run_lockstep(arguments);
    EXPECT_EQ(refused.exit_code, 2) << refused.err;
    EXPECT_NE(refused.err.find("comes from another network or optimizer: "), std::string::npos) << refused.err;
  }
}

// Made by version 0.1.0, with these flags and --save-every 1. A run at its end computes nothing, so what it loads and
// saves is the same on any processor.
TEST(Resume, AnOldCheckpointLoadsToTheBit) {
  const std::string old = fs::path{__FILE__}.parent_path() / "golden" / "step-000000004";
  for (const int n_ranks : {1, 2}) {
    const TemporaryFolder folder;
    const Ended ended =
        run(words_of("train toy --synthetic-samples 64 --batch 16 --epochs 1 --optimizer adam --lr 0.01 "
                     "--deterministic --threads 1 --digest"),
            "--resume " + old + " --run-dir " + folder / "r", on_one_node(n_ranks));
    EXPECT_NE(ended.out.find("weights b76649819f8359c5 losses 3705186ba73986d5b8f87db25290f14e"), std::string::npos)
        << ended.out;
    run(words_of("ckpt diff " + old), folder / "r");
  }
}

TEST(Resume, TheBestCheckpointHasAName) {
  const TemporaryFolder folder;
  run(words_of("train digits --synthetic-samples 64 --epochs 1 --save-every 1 --threads 1"),
      "--run-dir " + folder / "r");
  EXPECT_EQ(names_in(folder / "r/checkpoints"), (std::set<std::string>{"best", "step-000000001"}));
}

// Nodes are simulated: gradients travel in messages between them, and memory is shared within.
TEST(Resume, OnOtherNodesGivesTheBitsOfTheWhole) {
  const TemporaryFolder folder;
  const std::string whole = run(digits, "--epochs 2 --run-dir " + folder / "whole").line("digest");
  run(digits, "--max-steps 9 --save-every=1 --run-dir " + folder / "part", {0, 0, 1, 1});
  EXPECT_EQ(run(digits, "--epochs 2 --resume " + folder / "part" + " --run-dir " + folder / "a", {0, 1}).line("digest"),
            whole);
  EXPECT_EQ(
      run(digits, "--epochs 2 --resume " + folder / "part" + " --run-dir " + folder / "b", {0, 1, 0, 2}).line("digest"),
      whole);
}

// On several nodes zero1 divides what ddp has on each of them.
TEST(Resume, OnOtherNodesByAnotherStrategyGivesTheBitsOfTheWhole) {
  const TemporaryFolder folder;
  const std::string length = "--epochs 2 --optimizer lamb --lr 0.01 --clip-norm 0.5 --save-every=1 ";
  const std::string whole = run(digits, length + "--run-dir " + folder / "whole").line("digest");
  ASSERT_FALSE(whole.empty());
  const std::string on = length + "--resume auto --run-dir " + folder / "part";
  run(digits, on + " --strategy zero1 --max-steps 5", {0, 0, 1, 1});
  EXPECT_TRUE(fs::exists(folder / "part/checkpoints/step-000000005/rank-00003.h5")) << "each rank saves what it owns";
  run(digits, on + " --strategy ddp --max-steps 9", {0, 1});
  run(digits, on + " --strategy zero1 --max-steps 12", {0});
  EXPECT_EQ(run(digits, on + " --strategy zero1", {0, 1, 0, 2}).line("digest"), whole);
}

/// Ranks and precision of a run whose checkpoints others read.
struct Writer {
  int n_ranks;
  const char* precision;
};
constexpr Writer writers[] = {{1, "f32"}, {2, "f32"}, {3, "f32"}, {4, "f32"}, {2, "bf16"}};
constexpr Writer readers[] = {{1, "f32"}, {2, "f32"}, {3, "f32"}, {4, "f32"}, {3, "bf16"}};

// A loaded checkpoint equals the saved one: every tensor to the bit.
TEST(Resume, AnyRanksAndPrecisionReadWhatAnyOthersWrote) {
  const TemporaryFolder folder;
  const std::vector<std::string> plain = words_of(
      "train digits --synthetic-samples 32 --batch 8 --val-split= --threads 1 --optimizer adam --lr 0.001 "
      "--max-steps 3 "
      "--save-every 1");
  int number = 0;
  const std::size_t n_kinds = is_slow ? 2 : std::size(writers);
  for (const Writer& writer : std::span{writers}.last(n_kinds)) {
    const std::string saved = folder / ("saved" + std::to_string(number++));
    run(plain, std::string{"--precision "} + writer.precision + " --run-dir " + saved, on_one_node(writer.n_ranks));
    for (const Writer& reader : std::span{readers}.last(n_kinds)) {
      const std::string loaded = folder / "loaded";
      fs::remove_all(loaded);
      run(plain, std::string{"--precision "} + reader.precision + " --resume " + saved + " --run-dir " + loaded,
          on_one_node(reader.n_ranks));
      const Ended compared = run({"ckpt", "diff", saved, loaded}, "");
      EXPECT_NE(compared.out.find("tensors are equal to the bit"), std::string::npos) << compared.out;
    }
  }
}

// A damaged checkpoint is named, and the previous one is used.
TEST(Resume, PassesOverWhatIsDamaged) {
  const TemporaryFolder folder;
  const std::string whole = run(digits, "--epochs 3 --run-dir " + folder / "whole").line("digest");
  run(digits, "--max-steps 13 --save-every=40samples --keep 2 --run-dir " + folder / "part", on_one_node(2));
  const std::string newest = folder / "part/checkpoints/step-000000013";
  {
    std::fstream file{newest + "/rank-00001.h5", std::ios::in | std::ios::out | std::ios::binary};
    file.seekp(3000);
    file.put('X');
  }
  std::vector<std::string> named = digits;
  for (const std::string& word : words_of("--epochs 3 --resume " + newest + " --run-dir " + folder / "other"))
    named.push_back(word);
  const Ended refused = run_lockstep(named);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("checkpoint '" + newest + "' is damaged: rank-00001.h5 differs from what was written"),
            std::string::npos)
      << refused.err;
  const Ended ended =
      run(digits, "--epochs 3 --resume " + folder / "part" + " --run-dir " + folder / "other", on_one_node(2));
  EXPECT_EQ(ended.line("digest"), whole);
  EXPECT_NE(ended.err.find("is damaged: "), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("; skipped"), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("resumed epoch 2, after step 10"), std::string::npos) << ended.err;
}

/// Trains until `stop`, its last step; or, by a clock that advances by `look_s` at each look, until its time is nearly
/// over, at any moment. A signal asks for the same. Returns where it stopped.
std::string train_part(const DrawnRecipe& recipe, const std::string& words, std::uint64_t stop, double look_s,
                       const std::vector<int>& nodes) {
  if (look_s == 0) {
    run(recipe.arguments, words + " --max-steps " + std::to_string(stop), nodes);
    return "stopped after step " + std::to_string(stop);
  }
  std::vector<std::string> arguments = recipe.arguments;
  for (std::string& word : words_of(words + " --resume auto --time-limit 6")) arguments.push_back(std::move(word));
  const SetClock clock{{look_s}};
  const Ended part = run_lockstep(arguments, nodes, clock);
  EXPECT_TRUE(part.exit_code == 85 || part.exit_code == 0) << part.err;
  return "stopped by a clock that moves on by " + std::to_string(look_s) + " s at each look, exit code " +
         std::to_string(part.exit_code);
}

// Combinations of everything that a recipe can set; stopped after any step or at any moment, on any number of ranks,
// each run by any strategy.
TEST(Resume, DrawnRecipesGiveTheBitsOfTheWhole) {
  const TemporaryFolder folder;
  const std::uint64_t first = first_draw(1);
  const std::uint64_t n_draws = number_of_draws(is_slow ? 3 : 12);
  const std::vector<std::string> strategies = core::names_of(parallel::strategies_on(false));
  std::uint64_t n_by_clock = 0;
  std::set<std::string> drawn;
  for (std::uint64_t seed = first; seed < first + n_draws; ++seed) {
    const DrawnRecipe recipe = draw_recipe(seed, folder.path());
    for (const auto& [key, value] : recipe.chosen) drawn.insert(key);
    std::mt19937_64 random{seed};
    const auto ranks = [&] {
      const int n = recipe.rank_counts[random() % recipe.rank_counts.size()];
      std::vector<int> nodes = on_one_node(n);
      for (int& node : nodes) node = static_cast<int>(random() % 2);
      nodes.front() = 0;
      return nodes;
    };
    std::mt19937_64 of_strategies{~seed};
    const auto strategy = [&] { return strategies[of_strategies() % strategies.size()]; };
    const std::uint64_t n_steps = 4 + random() % 8, stop = 1 + random() % (n_steps - 1);
    const double look_s = random() % 2 == 0 ? 0 : 0.02 * static_cast<double>(1 + random() % 8);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << n_steps << " steps: " << recipe.text());
    const std::string whole_dir = folder / "whole", part_dir = folder / "part";
    const std::string length = "--max-steps " + std::to_string(n_steps);
    const std::string by_whole = strategy(), by_part = strategy(), by_rest = strategy();
    SCOPED_TRACE("whole by " + by_whole + ", part by " + by_part + ", rest by " + by_rest);
    const Ended whole = run(recipe.by(by_whole).arguments, length + " --run-dir " + whole_dir, ranks());
    const std::string stopped = train_part(
        recipe.by(by_part), (look_s > 0 ? length : "--save-every=1") + " --run-dir " + part_dir, stop, look_s, ranks());
    SCOPED_TRACE(stopped);
    if (stopped.ends_with("85")) ++n_by_clock;
    const Ended rest = run(recipe.by(by_rest).arguments, length + " --resume auto --run-dir " + part_dir, ranks());
    EXPECT_NE(rest.err.find("resumed epoch "), std::string::npos) << rest.err;
    EXPECT_NE(io::get(whole_dir + "/run.json")
                  .find(recipe.rank_counts.size() > 1 ? R"("same_bits": "any_ranks")" : R"("same_bits": "same_ranks")"),
              std::string::npos);
    EXPECT_FALSE(whole.line("digest").empty());
    EXPECT_EQ(rest.line("digest"), whole.line("digest"));
    fs::remove_all(whole_dir);
    fs::remove_all(part_dir);
    if (testing::Test::HasFailure()) return;  // one is enough to look at
  }
  if (n_draws >= 12) {
    EXPECT_GE(n_by_clock, n_draws / 6);
    for (const DrawnKey& key : drawn_keys())
      EXPECT_TRUE(key.values.empty() || drawn.contains(key.key)) << "no draw sets " << key.key << ": take another seed";
  }
  std::cout << n_draws << " combinations, " << n_by_clock << " of them stopped by the clock: all equal\n";
}

}  // namespace
}  // namespace lockstep::support
