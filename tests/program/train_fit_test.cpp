// lockstep train takes kinds and sizes of samples from the set; what model, recipe or flag cannot take of it is refused
// before anything starts, and so is what memory is too small for.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "support/lockstep_program.hpp"
#include "support/text.hpp"

namespace lockstep::training {
namespace {

using support::Ended;
using support::expect_told;
using support::lockstep_on;

using Numbers = std::vector<std::int64_t>;

/// An array as NumPy writes it.
std::string npy(const std::string& shape, const Numbers& numbers) {
  const std::string header = "{'descr': '<i8', 'fortran_order': False, 'shape': (" + shape + "), }";
  std::string bytes = "\x93NUMPY" + std::string{'\1', '\0', static_cast<char>(header.size()), '\0'} + header;
  for (const std::int64_t number : numbers) bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
  return bytes;
}

class TrainFit : public support::InFolder {
 protected:
  struct Arrays {
    std::string shape;
    Numbers numbers;
  };
  static void made(const std::string& name, const Arrays& x, const Arrays& y, const std::string& flags) {
    write("of_" + name + "/x.npy", npy(x.shape, x.numbers));
    write("of_" + name + "/y.npy", npy(y.shape, y.numbers));
    imported("npy of_" + name + " --out " + name + " " + flags);
  }
  static void imported(const std::string& line) { support::expect_done(lockstep_on, "shard import " + line); }
};

Ended trained(const std::string& line) { return support::expect_done(lockstep_on, "train " + line); }

void expect_all_refused(std::initializer_list<support::Refused> table) {
  for (support::Refused refused : table) {
    refused.line = "train " + refused.line + " --run-dir none";
    refused.says.insert(refused.says.end(), {"expected: ", "fix: "});
    expect_refused(lockstep_on, refused);
  }
}

// One target of four, y = -3 + 2 a, and two of them a sample; the loss is as small as they are near.
TEST_F(TrainFit, WholeNumbersAreNumbersToAModelThatLearnsNumbers) {
  made("whole", {"4, 2", {0, 1, 1, 0, 2, 1, 3, 1}}, {"4,", {-3, -1, 1, 3}}, "--no-classes");
  const Ended ran = trained("toy 300 --data whole --lr 0.1 --val-split '' --run-dir whole-run");
  std::smatch loss;
  ASSERT_TRUE(std::regex_search(ran.out, loss, std::regex{"\ntraining +loss ([^,\n]*)"})) << ran.out;
  EXPECT_LT(std::stod(loss[1]), 1e-3);
  made("pairs", {"2, 2", {0, 1, 1, 0}}, {"2, 3", {1, 2, 3, 4, 5, 6}}, "");
  trained("toy 1 --data pairs --val-split '' --run-dir pairs-run");
}

// No flag helps with labels that are words, nor with tables for a model of images: advice does not lead in circles.
TEST_F(TrainFit, RefusesSamplesThatTheModelDoesNotTake) {
  made("whole", {"4, 2", {0, 1, 1, 0, 2, 1, 3, 1}}, {"4,", {-3, -1, 1, 3}}, "--no-classes");
  made("classes", {"4, 2", {0, 1, 1, 0, 2, 1, 3, 1}}, {"4,", {0, 1, 2, 1}}, "");
  made("numbered", {"2, 1, 2, 2", {0, 1, 1, 0, 2, 1, 3, 1}}, {"2,", {1, 2}}, "--no-classes");
  made("triples", {"2, 3", {0, 1, 2, 1, 0, 2}}, {"2,", {1, 2}}, "--no-classes");
  made("negative", {"2, 2", {0, 1, -1, 0}}, {"2,", {1, 2}}, "--no-classes");
  write("words.csv", "a,b,species\n1,2,setosa\n2,3,virginica\n");
  imported("csv words.csv --out words");
  expect_all_refused({
      {"toy --data classes", {"y of the set is one of 3 classes", "no-classes"}},
      {"mnist_cnn --data whole", {"x of the set is int64 [2]"}},
      {"mnist_cnn --data numbered", {"the set has no classes: y is int64 []"}},
      {"toy --data words", {"y of the set is words: setosa, ", "no model learns classes from tables"}},
      {"digits --data words", {"x of the set is float32 [2]"}},
      {"movielens --data words", {"x of the set is float32 [2]"}},
      {"movielens --data triples", {"x of the set is int64 [3]"}},
      {"movielens --data negative", {"x has the number -1 in column 0, which is not an id"}},
  });
}

// As many as the set has, of all its splits; ratings may be whole numbers.
TEST_F(TrainFit, UsersAndItemsAreThoseOfTheSet) {
  made("ratings", {"6, 2", {0, 1, 1, 0, 700, 1, 3, 20, 2, 2, 0, 3}}, {"6,", {1, 2, 3, 4, 5, 4}},
       "--no-classes --val 0.5");
  write("ratings.csv", "userId,movieId,rating,timestamp\n7,5,3.5,1\n9,5,4,2\n7,1000000,1,3\n");
  imported("movielens ratings.csv --out films");
  std::ostringstream recipe;
  recipe << std::ifstream{LOCKSTEP_SOURCE_RECIPES "/movielens.toml"}.rdbuf();
  write("small.toml", std::regex_replace(recipe.str(), std::regex{"\nmodel[^\n]*"}, "$&\nitems = 20"));
  // The root of the mean squared error, in the unit of the ratings, of training and evaluation.
  expect_told(trained("movielens 1 --data ratings --run-dir ratings-run"), 0,
              {"\ntraining ", "\nevaluation ", ", rmse ", "evaluation: loss ", " of 3 samples"});
  auto files = support::files_here();
  for (const std::string kind : {"evaluation", "final"})
    EXPECT_TRUE(std::regex_search(files["./ratings-run/log.jsonl"],
                                  std::regex{"\"kind\": *\"" + kind + "\"[^\n]*\"rmse\": *[0-9]"}));
  // fastai's rule for widths.
  expect_told(support::expect_done(lockstep_on, "ckpt cat ratings-run/weights.h5"), 0, {"[701, 63]", "[21, 9]"});
  trained("movielens 1 --data ratings --users 800 --items 21 --run-dir more-run");
  trained("movielens 1 --data films --run-dir films-run");
  expect_all_refused({
      {"movielens --data ratings --users 610", {"the set has 701 users, but the model has rows for 610", "users"}},
      {"small.toml --data ratings", {"the set has 21 items, but the model has rows for 20"}},
  });
}

TEST_F(TrainFit, PerCentCountTheLimitOfSteps) {
  expect_told(trained("toy 50 --max-steps 20 --run-dir limited"), 0, {"steps   20 of 32 samples", "epoch 1/1  100 %"});
}

TEST_F(TrainFit, ClassesHaveNoSquaredError) {
  const Ended ran =
      trained("mnist_cnn --synthetic --synthetic-samples 8 --batch 4 --max-steps 1 --val-split '' --run-dir r");
  EXPECT_FALSE(support::has(ran.out, "rmse"));
}

// Told before any of it is taken, with what would fit.
TEST_F(TrainFit, RefusesWhatNoNodeHasMemoryFor) {
  const std::string huge = "train digits --batch 100000000 --synthetic-samples 100000000 --run-dir none";
  const std::string fix = "fix: --batch ";
  expect_refused(lockstep_on, {huge, {"1 rank on ", " needs ", "but it has ", fix, " or less, or --accumulate "}, 1});
  expect_refused(lockstep_on, {huge, {"2 ranks on ", " need ", "but it has ", fix, " or less, or --accumulate "}, 2});
}

}  // namespace
}  // namespace lockstep::training
