// lockstep train: what cannot be trained is refused by one message before anything is made, with exit code 2.
#include <sys/stat.h>

#include <filesystem>

#include "data/format/manifest.hpp"
#include "support/lockstep_program.hpp"

namespace lockstep::training {
namespace {

namespace fs = std::filesystem;
using support::lockstep_on;

class Train : public support::InFolder {};

const std::string resnet = "train resnet50_synthetic --model resnet18 --image-size 32 ";

TEST_F(Train, RefusesWhatItCannotTrain) {
  const support::Refused table[] = {
      {"train tooy", {"did you mean 'toy'"}},
      {"train toy --bacth 3", {"did you mean '--batch'"}},
      {"train toy --batch 0", {"batch"}},
      {"train toy --batch -3", {"a whole number from 1 to 4294967295"}},
      {"train toy --lr -1", {"lr"}},
      {"train toy --optimizer sdg", {"did you mean 'sgd'"}},
      {"train toy --threads 513", {"from 1 to 512"}},
      {"train toy fifty", {"fifty"}},
      {"train toy --nproc 7", {"--nproc"}},
      {"train mnist_cnn --data nowhere", {"nowhere"}},
      {"train toy --batch 2", {"at least a sample for each rank"}, 3},
      {"train digits --deterministic", {"lanes"}, 3},
      {resnet + "--batch 24 --bn-group 12", {"groups of 12 samples do not divide"}, 3},
      {resnet + "--batch 16 --bn-group 8 --accumulate 2", {"computed one after another"}, 2},
      {resnet + "--batch 16 --bn-group 16 --deterministic", {"groups of 16 samples", "in 4 lanes"}, 1},
      {resnet + "--batch 16 --bn-group 4 --synthetic-samples 21", {"the last batch of an epoch"}, 1},
      {"train toy --precision f16 --device host", {"f16 runs only on GPUs"}},
      {"train toy --init-from none.h5", {"none.h5"}},
      {"train toy --save-weights none/w.h5", {"save-weights"}},
      {"train toy --save-weights .", {"save-weights"}},
      {"train toy --schedule step --step-size 0.0001", {"step-samples"}},
      {"train toy 1 --schedule cosine --warmup '5000 samples'", {"warm-up"}},
      {"train cifar_resnet18 --synthetic --image-size 64", {"the same shape"}, 1},
      {"train digits --val-split vla", {"no split 'vla'"}},
      {"train toy --evaluate-only", {"no samples to evaluate on", "fix: ", "--data"}},
      {"train digits --evaluate-only --save-weights w.h5", {"--save-weights needs training"}},
      {"train digits --evaluate-only --compat", {"--compat needs training"}},
      {"train digits --evaluate-only --dry-run", {"--dry-run needs training"}},
      {"train digits --evaluate-only --profile", {"--profile needs training"}},
      {"train digits --evaluate-only --lr 3", {"--lr needs training"}},
      {"train digits --evaluate-only --max-steps 3", {"--max-steps needs training"}},
      {"train digits --evaluate-only --epochs 2", {"--epochs needs training"}},
      {"train toy --augment flip", {"samples that are not images: float32 [20]", "(augment)"}},
      {"train digits --val-augment normalize:0.1/0.2/0.3:1", {"(val-augment)"}},
  };
  for (const support::Refused& refused : table) expect_refused(lockstep_on, refused);
}

TEST_F(Train, RefusesToEvaluateOnNoSamples) {
  support::expect_done(lockstep_on, "shard synth toy --out d --samples 64");
  data::Manifest manifest = data::read_manifest("d");
  manifest.splits = {manifest.splits.front(), {.name = "none", .n_samples = 0, .shards = {}}};
  write("d/manifest.json", data::serialize(manifest));

  expect_refused(lockstep_on, {"train toy 1 --data d --val-split none",
                               {"the split 'none' has no samples to evaluate on", "(val-split, d)", "fix: "}});
}

TEST_F(Train, RefusesWeightsThatItCannotRead) {
  write("legacy.pt", "\x80\x02\x8a\nl");
  write("empty.h5", "");
  const support::Refused table[] = {
      {"train toy --init-from legacy.pt", {"'legacy.pt' is a Python pickle", "(--init-from)", "fix: convert it"}},
      {"train toy --init-from empty.h5", {"'empty.h5' is an empty file", "(--init-from)", "fix: "}},
      {"ckpt import legacy.pt --out w.h5", {"'legacy.pt' is a Python pickle", "fix: convert it"}},
  };
  for (const support::Refused& refused : table) expect_refused(lockstep_on, refused);
}

TEST_F(Train, RefusesASetThatIsOfOtherSamples) {
  support::expect_done(lockstep_on, "shard synth images --out d --samples 64 --height 4 --width 4");
  fs::copy_file(LOCKSTEP_SOURCE_RECIPES "/toy.toml", "mine.toml");

  const support::Refused table[] = {
      {"train mnist_cnn --data d --augment normalize:0.5:0.5 --classes 10 --val-split ''", {"too small"}},
      {"train mnist_cnn --data d --val-split ''", {"model mnist_cnn does not accept the samples of 'd'", "fix: "}},
      {"train movielens --data d", {"whole numbers"}},
      {"train resnet50_synthetic --no-synthetic --data d", {"as many outputs as classes"}, 1},
      {"train mine.toml --compat", {"has no tutorial"}},
  };
  for (const support::Refused& refused : table) expect_refused(lockstep_on, refused);
}

// What is there and is neither a run nor a file of weights stays, and a set of shards stays one.
TEST_F(Train, ReplacesNothingOfOthers) {
  support::expect_done(lockstep_on, "shard synth toy --out d --samples 64");
  write("of_others/run.json", "{}");
  write("notes", "notes of mine");
  write("victim", "another's");
  fs::copy_file("d/train-00000.h5", "shard");
  fs::create_symlink(fs::absolute("d/new.h5"), "link");
  fs::create_directories("theirs");
  fs::create_symlink("../victim", "theirs/weights.h5");
  fs::create_directories("pipe");  // a log that is a pipe keeps nobody waiting
  EXPECT_EQ(mkfifo("pipe/log.jsonl", 0600), 0);
  for (const std::string name : {"run.json", "status.json", "weights.h5"}) {
    fs::create_directories("linked_" + name);
    fs::create_symlink("../victim", "linked_" + name + "/" + name);
  }
  write("mine/weights.h5", "notes of mine");
  write("kept/checkpoints/step-000000001/index.json", "{}");

  const support::Refused table[] = {
      {"train toy --run-dir of_others", {"'of_others' holds another run"}},
      {"train toy 1 --run-dir theirs", {"'theirs/weights.h5' is a symbolic link"}},
      {"train toy 1 --run-dir linked_run.json", {"is a symbolic link", "--run-dir"}},
      {"train toy 1 --run-dir linked_run.json --resume auto", {"is a symbolic link"}},
      {"train toy 1 --run-dir linked_status.json --resume auto", {"is a symbolic link"}},
      {"train toy 1 --run-dir linked_weights.h5 --resume auto", {"is a symbolic link"}},
      {"train toy 1 --run-dir mine --resume auto", {"'mine/weights.h5' exists, and is not a weights file"}},
      {"train toy 1 --run-dir kept", {"'kept' holds another run"}},
      {"train toy 1 --run-dir pipe", {"'pipe/log.jsonl' is a pipe or device"}},
      {"train toy 1 --run-dir d", {"holds a set of shards"}},
      {"train toy 1 --save-weights d/train-00000.h5", {"would be inside a set of shards"}},
      {"train toy 1 --save-weights d/manifest.json", {"would be inside a set of shards"}},
      {"train toy 1 --save-weights d/new.h5", {"would be inside a set of shards"}},
      {"train toy 1 --save-weights link", {"would be inside a set of shards"}},
      {"train toy 1 --save-weights shard", {"not a weights file"}},
      {"train toy 1 --save-weights notes", {"not a weights file"}},
  };
  for (const support::Refused& refused : table) expect_refused(lockstep_on, refused);
}

// A number that no system has threads for would end the process by a signal.
TEST_F(Train, RefusesAnImpossibleNumberOfThreads) {
  for (const std::string n : {"99999", "4097", "5000,2", "99999999999999999999"}) {
    const support::Variables variables{{{"OMP_NUM_THREADS", n}}};
    expect_refused(lockstep_on, {"train toy 1 --run-dir r", {"OMP_NUM_THREADS is " + n, "at most 4096 threads"}});
  }
}

TEST_F(Train, WeightsReplaceWeights) {
  for (const std::string epochs : {"1", "2"})
    support::expect_done(lockstep_on, "train toy " + epochs + " --save-weights w.h5 --run-dir " + epochs);
}

}  // namespace
}  // namespace lockstep::training
