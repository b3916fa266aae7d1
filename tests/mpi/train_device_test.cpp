// lockstep train, and doctor, on made-up GPUs: where a run computes, what fits, what is stored, and that an
// interruption changes no bit. A test also fails if operations are enqueued in an order that a GPU need not keep.
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/train_on_made_up_gpus.hpp"

namespace lockstep::training {
namespace {

using support::digest_of;
using support::Ended;
using support::expect_all;
using support::has;
using support::lockstep_line;
using support::loss_of;
using support::matches;
using support::trained;
using support::Variables;
using support::world;

class TrainOnDevice : public support::OnMadeUpGpus {};

const Variables::Values no_gpu{{"LOCKSTEP_MADE_UP_GPUS", "0"}};
const Variables::Values lacking{{"LOCKSTEP_MADE_UP_LACK", "cuDNN is not in it"}};

Variables::Values bytes(const std::string& n) { return {{"LOCKSTEP_MADE_UP_GPU_BYTES", n}}; }
Variables::Values architecture(const std::string& n) { return {{"LOCKSTEP_MADE_UP_GPU_ARCHITECTURE", n}}; }

TEST_F(TrainOnDevice, AutoIsTheHostWithoutAGpuAndCudaIsRefused) {
  const std::vector<std::string> shows_none{"has no GPU: the NVIDIA driver shows no GPU", "  fix: ", "--device host"};
  expect_all(
      lockstep_line,
      {
          {{1},
           "train toy 1 --run-dir none",
           {"device  host: the NVIDIA driver shows no GPU to this process\n"},
           no_gpu},
          {{1}, "train toy 1 --run-dir lacking", {"device  host: cuDNN is not in it\n"}, lacking},
          {{1}, "doctor --recipe toy", {"skipped", "not checked: no GPU for this job: cuDNN is not in it\n"}, lacking},
          {{1}, "doctor --recipe toy --device cuda", {"cuDNN is not in it"}, lacking, 1},
          {{1, 2}, "train toy --device cuda --run-dir none-asked", shows_none, no_gpu, 2},
          {{1}, "train toy --device gpu", {"unknown device 'gpu'", "did you mean 'cuda'"}, {}, 2},
          {{1}, "train toy --share-gpu --device host", {"ranks share only GPUs"}, {}, 2},
          {{2},
           "train toy --device cuda",
           {"ranks 0 and 1 share one GPU, GPU-0", "--device cuda", "  fix: ", "--share-gpu"},
           {},
           2},
          {{2}, "train toy 1 --run-dir auto-shared", {"device  host: ranks 0 and 1 share one GPU"}},
          {{1}, "train toy --device host --dry-run", {"of host memory per rank", "toy, f32\n"}, {}, 0, {"\ndevice"}},
          {{2}, "train toy --device cuda --dry-run --share-gpu --init-from nowhere", {"nowhere"}, {}, 2},
          {{1},
           "train toy --device cuda --strategy zero2",
           {"strategy 'zero2' is not for GPUs in this version (strategy)", "ddp, zero1", "  fix: ", "--device host"},
           {},
           2},
          {{1},
           "train toy 1 --device cuda --strategy zero1 --run-dir alone",
           {"warning: strategy zero1 is the same as ddp here: one rank divides nothing\n"}},
          {{2},
           "train toy --device cuda --share-gpu --strategy zero1 --dry-run",
           {"zero1: each GPU keeps all that passes read and all gradients, and all divide the optimizer states\n",
            "of which each rank gets the sums of its part; "}},
      });
}

// Sums have another order, unless one rank has everything.
TEST_F(TrainOnDevice, AnotherStrategyMayChangeTheLastBits) {
  const std::string line = "toy --deterministic --device cuda --share-gpu --save-every 1 --run-dir strategies ";
  trained(line + "--max-steps 1");
  const Ended ended = trained(line + "--max-steps 2 --strategy zero1 --resume auto");
  EXPECT_EQ(has(ended.err, "strategy was \"ddp\", and is now \"zero1\""), world().n_ranks() > 1) << ended.err;
}

TEST_F(TrainOnDevice, FlagsOfGpusWarnWhereTheyHaveNoEffect) {
  const std::string on_host = " has no effect: this run is on the host\n";
  expect_all(lockstep_line, {
                                {{1}, "train toy 1 --autotune --run-dir a", {"warning: --autotune" + on_host}, no_gpu},
                                {{1},
                                 "train toy 1 --autotune --deterministic --run-dir b",
                                 {"warning: --autotune has no effect: this run chooses nothing by timing\n"}},
                                {{1},
                                 "train toy 1 --autotune --share-gpu --run-dir c",
                                 {},
                                 {},
                                 0,
                                 {"warning: --autotune", "warning: --share-gpu"}},
                            });
  const Variables variables{no_gpu};
  const Ended ended = trained("toy 1 --share-gpu --run-dir d");
  const std::size_t first = ended.err.find("warning: --share-gpu" + on_host);
  EXPECT_NE(first, std::string::npos) << ended.err;
  EXPECT_EQ(ended.err.find("--share-gpu", first + 20), std::string::npos) << "told twice";
}

// Unless a precision is given.
TEST_F(TrainOnDevice, ComputesInThePrecisionThatTheGpuMultipliesFastestIn) {
  if (world().n_ranks() > 1) return;
  for (const auto& [number, precision] : {std::pair{"90", "bf16"}, {"80", "bf16"}, {"70", "f16"}}) {
    const Variables variables{architecture(number)};
    const std::string folder = std::string{"sm-"} + number;
    expect_told(trained("toy 1 --run-dir " + folder), 0, {std::string{"toy: 21 parameters, "} + precision + "\n"});
    EXPECT_TRUE(
        has(support::files_here()["./" + folder + "/run.json"], std::string{"\"precision\": \""} + precision + '"'));
  }
  expect_all(lockstep_line,
             {
                 {{1},
                  "train toy --precision bf16",
                  {"does not multiply matrices in bf16 (precision)"},
                  architecture("75"),
                  2},
                 {{1}, "doctor --recipe toy --device cuda", {}, architecture("75")},
                 {{1}, "train --self-test toy", {"toy", "f16", " ok\n"}, architecture("75"), 0, {"bf16"}},
             });
}

const std::string large =
    "train resnet50_synthetic --model resnet18 --image-size 64 --bn-group 4 --synthetic-steps 1 --max-steps 1 --device "
    "cuda ";

/// The flag that "fix: " names, such as "--batch 12".
std::string fix_of(const Ended& ended) {
  std::smatch fix;
  EXPECT_TRUE(std::regex_search(ended.err, fix, std::regex{"fix: (--batch [0-9]+) or less"})) << ended.err;
  return fix.empty() ? "" : fix[1].str();
}
std::string one_more(const std::string& fix, int n) {
  return "--batch " + std::to_string(std::stoi(fix.substr(fix.rfind(' '))) + n);
}

Ended refused(const std::string& line) {
  Ended ended = lockstep_line(support::words_of(line), world().n_ranks());
  expect_told(ended, 2, {});
  return ended;
}

// Both by the run and by a dry run, which allocates none of the memory.
TEST_F(TrainOnDevice, WhatDoesNotFitIsRefusedWithTheLargestBatchThatDoes) {
  if (world().n_ranks() > 1) return;
  const Variables variables{bytes("200000000")};
  expect_refused(lockstep_line,
                 {large + "--batch 64",
                  {"a rank on ", " for activations, but the GPU has, less a sixteenth for its libraries, 18"},
                  1});
  const Ended ended = refused(large + "--batch 64 --dry-run");
  for (const char* const line :
       {"^steps  .* at most 64 samples per rank",
        "^memory  .* of GPU memory per rank, including .* for activations; it does not fit: 18[78] MB are left$"})
    EXPECT_TRUE(matches(ended.out, line)) << line << "\n" << ended.out;
  const std::string fix = fix_of(ended);
  refused(large + one_more(fix, 4) + " --dry-run");
  const Ended fits = expect_done(lockstep_line, large + fix + " --dry-run");
  for (const char* const line :
       {"^memory  .* of GPU memory per rank, including .* for activations; it fits: 18[78] MB are left$",
        "^traffic  *0 B of gradients", "^model  *resnet18, bf16$", "^device  *made-up GPU$"})
    EXPECT_TRUE(matches(fits.out, line)) << line << "\n" << fits.out;
}

// The same if ranks share the GPU; and if groups are the whole batch, they then follow it.
TEST_F(TrainOnDevice, GroupsFollowTheBatchThatFits) {
  const struct {
    int n_ranks;
    const char* n_bytes;
    const char* words;
  } table[] = {{2, "380000000", "--share-gpu --batch 48"},
               {1, "190000000", "--batch 64 --bn-group 64"},
               {2, "380000000", "--share-gpu --batch 48 --bn-group 48"}};
  for (const auto& [n_ranks, n_bytes, words] : table) {
    if (n_ranks != world().n_ranks()) continue;
    SCOPED_TRACE(words);
    const Variables variables{bytes(n_bytes)};
    const Ended ended = refused(large + words + " --dry-run");
    std::smatch group;
    const bool is_named =
        std::regex_search(ended.err, group, std::regex{"or less \\(and (--bn-group [0-9]*), if flag or recipe"});
    expect_done(lockstep_line,
                large + words + " " + fix_of(ended) + " " + (is_named ? group[1].str() : "") + " --dry-run");
  }
  if (world().n_ranks() != 2) return;
  const Variables variables{bytes("300000000")};
  const Ended ended = refused(large + "--batch 64 --dry-run --share-gpu");
  EXPECT_TRUE(matches(ended.out, "^memory  .* it does not fit: 28[12] MB are left for 2 ranks$")) << ended.out;
}

TEST_F(TrainOnDevice, EvaluationsAndDoctorKnowWhatFits) {
  if (world().n_ranks() > 1) return;
  const std::string evaluate = "train digits --evaluate-only --synthetic-samples 640 ";
  {
    const Variables variables{bytes("35000000")};
    const std::string fix = fix_of(refused(evaluate + "--batch 500"));
    expect_told(expect_done(lockstep_line, evaluate + fix), 0, {"info: evaluated in bf16 on made-up GPU\n"});
    refused(evaluate + one_more(fix, 1));
  }
  expect_all(lockstep_line, {
                                {{1},
                                 "doctor --recipe digits --device cuda",
                                 {" for activations, but the GPU has", "fix: --batch "},
                                 bytes("30000000"),
                                 1},
                                {{1}, "doctor --recipe digits", {" MB needed per rank\n"}, bytes("400000000")},
                            });
}

// Such a deep network has another limit, and takes a minute.
TEST_F(TrainOnDevice, DISABLED_TheSelfTestComparesDeepNetworks) {
  if (world().n_ranks() > 1) return;
  const Ended ended = expect_done(lockstep_line, "train --self-test bottlenecks");
  EXPECT_TRUE(matches(ended.out, "^bottlenecks  *f32 .* 4e-01  ok$")) << ended.out;
}

TEST_F(TrainOnDevice, TheSelfTestComparesTheDeviceWithTheHost) {
  if (world().n_ranks() > 1) return;
  const Ended ended = expect_done(lockstep_line, "train --self-test toy movielens mnist_cnn");
  for (const char* const line :
       {"^device  made-up GPU$", "^mnist_cnn  *bf16 .* ok$", "^verdict the device computes the same as the host$"})
    EXPECT_TRUE(matches(ended.out, line)) << line << "\n" << ended.out;
  EXPECT_FALSE(has(ended.out, "\nresnet50")) << "a model that was not asked for";
  const std::vector<std::string> expected{"expected: names of models, and no flags but ", "--device, --timeout"};
  for (const std::string words : {"--batch 8", "--batch=8", "--nproc 2", "--share-gpu", "--run-dir r", "--dry-run"}) {
    const std::string flag = words.substr(0, words.find_first_of(" ="));
    expect_all(lockstep_line, {{{1},
                                "train toy --self-test " + words,
                                {flag + " cannot be combined with --self-test", expected[0], expected[1]},
                                {},
                                2}});
  }
  expect_all(
      lockstep_line,
      {
          {{1}, "train --self-test tou", {"unknown model 'tou'"}, {}, 2},
          {{1}, "train --self-test --devise host", {"unknown flag '--devise'", "did you mean '--device'"}, {}, 2},
          {{1}, "train --self-test toy", {"shows no GPU"}, no_gpu, 2},
      });
}

// Nor does another device than that of the checkpoint.
TEST_F(TrainOnDevice, AnInterruptionChangesNoBit) {
  if (world().n_ranks() != 2) return;
  const std::string on_gpu = " --device cuda --share-gpu --precision f32 --deterministic --digest ";
  const Ended whole = trained("toy 6" + on_gpu + "--run-dir whole");
  trained("toy 3" + on_gpu + "--save-every 3 --run-dir half");
  EXPECT_EQ(digest_of(trained("toy 6" + on_gpu + "--resume half --resume-anyway --run-dir rest")), digest_of(whole));
  const Ended host = trained("toy 6 --device host --resume half --resume-anyway --run-dir rest-host");
  support::expect_near(loss_of(host), loss_of(whole), 0.001);
}

/// The number of updates in the loss scale that the last checkpoint of a run stores.
std::uint64_t updates_of(const std::string& run) {
  for (const auto& [name, content] : support::files_here())
    if (name.starts_with("./" + run + "/checkpoints/") && name.ends_with("/index.json")) {
      std::smatch updates;
      if (std::regex_search(content, updates, std::regex{R"("loss_scale": \{[^}]*"updates": ([0-9]+))"}))
        return std::stoull(updates[1]);
    }
  ADD_FAILURE() << "no scale in a checkpoint of " << run;
  return 0;
}

// In f16, until the scale of the loss fits: the checkpoint stores that scale and the number of updates.
TEST_F(TrainOnDevice, SkippedStepsAreKept) {
  if (world().n_ranks() > 1) return;
  const std::string digits = "digits --synthetic-samples 32 --batch 2 --val-split= --digest ";
  const std::string f16 = digits + "--device cuda --precision f16 ";
  const Ended whole = trained(f16 + "--max-steps 8 --run-dir whole");
  trained(f16 + "--max-steps 4 --save-every 8 --run-dir half");
  EXPECT_GE(updates_of("half"), 1U);
  EXPECT_LE(updates_of("half"), 3U) << "no step was skipped";
  EXPECT_EQ(digest_of(trained(f16 + "--max-steps 8 --resume half --run-dir rest")), digest_of(whole));
  trained(digits + "--device host --precision f32 --max-steps 8 --save-every 16 --resume half --run-dir host");
  EXPECT_GE(updates_of("host"), 5U);
  EXPECT_LE(updates_of("host"), 7U) << "the host forgets skipped steps";
}

// Times layers between marks; the limits are as small as this memory allows.
TEST_F(TrainOnDevice, AProfileChangesNoBit) {
  const Variables variables{bytes("100000000")};
  const std::string line =
      "digits --synthetic-samples 32 --batch 2 --max-steps 8 --val-split= --device cuda --share-gpu --digest "
      "--precision bf16 ";
  const Ended plain = trained(line + "--run-dir plain");
  const Ended profiled = trained(line + "--profile --run-dir profiled");
  EXPECT_EQ(digest_of(profiled), digest_of(plain));
  for (const char* const text : {"^conv2 +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+  product +[0-9]+$", "^all layers ",
                                 "^step  .*, mean of [1-9][0-9]* steps and all ranks",
                                 "^limits  .* matrices of 256x256; .* a ReLU of 256 KiB;$"})
    EXPECT_TRUE(matches(profiled.out, text)) << text << "\n" << profiled.out;
  EXPECT_TRUE(
      matches(support::files_here()["./profiled/log.jsonl"], R"("kind": *"profile".*"limit_product_side": *256,)"));
}

// With the state from before that step, which the host can repeat.
TEST_F(TrainOnDevice, ALossThatIsNotFiniteEndsTheRun) {
  if (world().n_ranks() != 2) return;
  const Ended ended = lockstep_line(
      support::words_of("train toy 5 --lr 1e30 --optimizer sgd --device cuda --share-gpu --run-dir bad"), 2);
  expect_told(ended, 1, {"the loss of step 3 is not finite"});
  if (const auto replayed = support::trained_alone("--replay bad/bad-step-000000003"))
    expect_told(*replayed, 0, {"verdict   not finite here either"});
}

}  // namespace
}  // namespace lockstep::training
