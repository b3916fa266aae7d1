// lockstep ckpt: what it says of checkpoints that are whole, damaged, incomplete or different. Weights go out in
// any format and come back to the bit.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "support/lockstep_program.hpp"
#include "support/text.hpp"
#include "support/unreadable.hpp"
#include "unit/io/temporary_folder.hpp"

namespace lockstep::training {
namespace {

namespace fs = std::filesystem;
using support::Ended;
using support::expect_told;
using support::has;
using support::lockstep_on;
using support::words_of;

class Ckpt : public support::InFolder {
 protected:
  static void trained(const std::string& flags, int n_ranks = 1) {
    support::expect_done(lockstep_on,
                         "train digits --synthetic-samples 128 --save-every 1 --deterministic --threads 1 " + flags,
                         n_ranks);
  }
};

Ended ckpt(const std::string& line) { return lockstep_on(words_of("ckpt " + line)); }
Ended made(const std::string& line) { return support::expect_done(lockstep_on, "ckpt " + line); }

std::string after(const std::string& text, const std::string& word) {
  const std::size_t at = text.find(word);
  return at == std::string::npos ? "" : text.substr(at + word.size(), text.find('\n', at) - at - word.size());
}

/// The tensors with their digests, without the line above them.
std::string listed(const std::string& place) {
  const std::string text = made("cat " + place).out;
  return text.substr(std::min(text.size(), text.find('\n') + 1));
}

void overwrite(const std::string& path, std::size_t at) {
  std::string bytes = support::files_here()["./" + path];
  if (!bytes.empty()) bytes.at(at) = static_cast<char>(bytes.at(at) ^ 0x5a);
  support::InFolder::write(path, bytes);
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator{folder})
    if (const std::string name = entry.path().filename(); !name.starts_with('.')) names.push_back(name);
  std::ranges::sort(names);
  return names;
}

TEST_F(Ckpt, TellsTheWholeFromTheDamagedAndTheDifferent) {
  const std::string adam = "--epochs 2 --optimizer adam --lr 0.001 ";
  trained(adam + "--run-dir a");
  trained(adam + "--run-dir b", 2);
  trained(adam + "--run-dir c --seed 2");
  const Ended list = made("ls a");
  expect_told(list, 0, {"step-000000004 ", "step-000000002 ", " complete"});
  EXPECT_LE(list.out.find("step-000000004"), list.out.find("step-000000002")) << "newest first";
  for (const int n_ranks : {1, 2})
    expect_told(lockstep_on({"ckpt", "verify", "b"}, n_ranks), 0,
                {"step-000000004 is whole: 2 files, ", "step-000000002 is whole: 2 files, ",
                 ", every byte as it was written\n"});
  expect_told(made("diff a b"), 0, {"tensors are equal to the bit\n"});
  expect_told(ckpt("diff a/checkpoints/step-000000002 b"), 1, {"step: 2 and 4\n"});
  expect_told(ckpt("diff a c"), 1, {"exp_avg/", " ULP apart; ", " tensors differ\n"});

  const std::string damaged =
      "checkpoint 'b/checkpoints/step-000000004' is damaged: rank-00000.h5 differs from what was written\n";
  overwrite("b/checkpoints/step-000000004/rank-00000.h5", 2500);
  fs::remove("a/checkpoints/step-000000004/DONE");

  const std::string fix = "fix: resume from the newest that is whole: lockstep train RECIPE --resume ";
  for (const int n_ranks : {1, 2})
    expect_told(lockstep_on({"ckpt", "verify", "b"}, n_ranks), 1,
                {damaged, "b/checkpoints/step-000000002 is whole",
                 fix + "b/checkpoints/step-000000002 --run-dir NEW; in the run's own folder: --resume auto\n"});
  expect_told(ckpt("verify b/checkpoints/step-000000004"), 1,
              {damaged, "fix: copy it again; to find another: lockstep ckpt verify b/checkpoints/\n"});
  expect_told(ckpt("ls a"), 1, {"is incomplete: it has no DONE\n", " complete"});
  fs::copy("a", "lost", fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  fs::remove("lost/checkpoints/step-000000002/DONE");
  expect_told(ckpt("verify lost"), 1, {"fix: none is whole: copy one again, or start a new run in another folder\n"});
  fs::remove_all("lost");
  const Ended newest_whole = ckpt("diff a b");
  expect_told(newest_whole, 0, {"warning: " + damaged.substr(0, damaged.find(':'))});
  fs::remove("b/checkpoints/best");
  fs::create_symlink("step-000000004", "b/checkpoints/best");  // is removed with what it names
  fs::create_directory("b/checkpoints/.step-000000006.tmp-of-somebody");

  made("prune b --keep 1");
  EXPECT_EQ(names_in("b/checkpoints"), std::vector<std::string>{"step-000000002"});
}

TEST_F(Ckpt, AsksForWhatMayNotBeRead) {
  trained("--epochs 2 --run-dir r");
  const std::string newest = "r/checkpoints/step-000000004", older = "r/checkpoints/step-000000002";
  const std::string fix = "fix: make readable what could not be read, and verify again";
  for (const std::string name : {"/DONE", "/index.json", "/rank-00000.h5", ""}) {
    const support::Unreadable closed{newest + name};
    for (const int n_ranks : {1, 2})
      expect_told(lockstep_on({"ckpt", "verify", "r"}, n_ranks), 3,
                  {newest + name + "': Permission denied", older + " is whole",
                   fix + "; or resume from the newest that is whole: lockstep train RECIPE --resume " + older +
                       " --run-dir NEW\n"});
    expect_told(ckpt("ls r"), 3, {newest + name + "': Permission denied", " complete"});
  }
  const support::Unreadable one{newest + "/DONE"}, other{older + "/DONE"};
  expect_told(ckpt("verify r"), 3, {fix + "\n"});
}

// The one with the best evaluation stays, and of every second epoch, whatever is kept of others.
TEST_F(Ckpt, KeepsWhatHasAName) {
  const std::string named = "--epochs 5 --lr 4 --keep 1 --keep-epochs 2 --resume auto --run-dir n";
  const auto links = [] {
    std::vector<std::string> all;
    for (const std::string link : {"best", "epoch-002", "epoch-004"})
      all.push_back(fs::read_symlink("n/checkpoints/" + link));
    return all;
  };
  trained(named);
  const std::string log = support::files_here()["./n/log.jsonl"];
  std::string best;
  double best_top1 = -1;
  double best_loss = 0;
  std::istringstream lines{log};
  for (std::string line; std::getline(lines, line);) {
    if (!has(line, R"("kind":"evaluation")")) continue;
    const double top1 = std::stod(after(line, R"("top1_percent":)"));
    const double loss = std::stod(after(line, R"("loss":)"));
    if (top1 < best_top1 || (top1 == best_top1 && loss >= best_loss)) continue;
    best_top1 = top1;
    best_loss = loss;
    best = "step-" + fmt::format("{:09}", std::stoi(after(line, R"("step":)")));
  }
  const std::vector<std::string> expected{best, "step-000000004", "step-000000008"};
  EXPECT_EQ(links(), expected);
  // as if it had been killed before it gave the name
  fs::remove_all("n/checkpoints/step-000000010");
  fs::remove("n/checkpoints/epoch-004");

  trained(named);
  EXPECT_EQ(links(), expected);
  expect_told(made("ls n"), 0, {"step-000000004 ", "epoch-002\n"});
  made("prune n --keep 1");
  EXPECT_EQ(links(), expected);
  for (const std::string link : {"best", "epoch-002", "epoch-004"}) {
    made("verify n/checkpoints/" + link);
    support::expect_done(lockstep_on,
                         "train digits --synthetic-samples 128 --evaluate-only --init-from n/checkpoints/" + link +
                             " --run-dir of-" + link);
  }
}

// Checkpoints are ordered by their names.
TEST_F(Ckpt, TheNameOfAnotherStepIsNotBelieved) {
  const std::string toy = "train toy --synthetic-samples 128 --batch 32 --save-every 1 --run-dir r ";
  const std::string folder = "r/checkpoints/", wrong = folder + "step-000000999";
  support::expect_done(lockstep_on, toy + "--epochs 3");
  fs::copy(folder + "step-000000004", wrong, fs::copy_options::recursive);
  const std::string why = "the folder of step 4 is called step-000000999, not step-000000004";
  const std::string says = "checkpoint '" + wrong + "' has the name of another step: " + why;
  for (const int n_ranks : {1, 2})
    expect_told(lockstep_on({"ckpt", "verify", "r"}, n_ranks), 2,
                {says + "\n", folder + "step-000000012 is whole", "fix: rename '" + wrong + "', or move it away"});
  expect_told(ckpt("ls r"), 2, {says, "complete"});
  for (const std::string line : {"ckpt prune r --keep 1", "ckpt prune r --keep 9"})
    expect_refused(lockstep_on, {line, {says, "fix: rename it, or move it away"}});
  expect_refused(lockstep_on, {"ckpt cat " + wrong, {says}});
  fs::rename(folder + "step-000000008", folder + "step-000000005");
  for (const int n_ranks : {1, 2})
    expect_told(
        support::expect_done(lockstep_on, toy + "--keep 1 --resume auto --epochs " + std::to_string(3 + n_ranks),
                             n_ranks),
        0,
        {"warning: " + says + "; skipped\n",
         fmt::format("resumed epoch {}, after step {}", 3 + n_ranks, 8 + 4 * n_ranks),
         "warning: '" + folder + "step-000000005' is left alone: the folder of step 8 is called step-000000005"});
  for (const std::string step : {"005", "020", "999"}) EXPECT_TRUE(fs::exists(folder + "step-000000" + step + "/DONE"));
}

TEST_F(Ckpt, WeightsComeBackToTheBitFromEveryFormat) {
  trained("--epochs 1 --optimizer adam --lr 0.001 --run-dir a");
  const std::string step = "a/checkpoints/step-000000002";
  expect_told(made("cat a"), 0,
              {step + ": recipe digits, model mnist_cnn, resumes at epoch 2, step 2, after 128 samples\n",
               "exp_avg_sq/fc1.weight", "[128, 9216]", "4.72 MB  ", "\n24 tensors, 14.4 MB\n"});
  expect_told(made("cat " + step + " fc2.bias exp_avg/fc2.bias"), 0,
              {"parameter/fc2.bias [10] float32\n", "\n  from ", ", mean ", "\n  0 of 10 not finite\n"});
  const std::string values = made("cat a fc2.bias --all").out;
  EXPECT_EQ(std::ranges::count(values, '\n'), 10);
  const std::string saved = listed("a/weights.h5");
  for (const std::string name : {"w.h5", "w.npz", "w.safetensors"}) {
    expect_told(made("export a --out " + name), 0, {name + ": 8 tensors, 4.8 MB, from " + step + "\n"});
    EXPECT_EQ(listed(name), saved) << name;
    EXPECT_EQ(made("cat " + name + " fc2.bias --all").out, values);
    made("export a/weights.h5 --out again-" + name);
    made("export a --out all-" + name + " --optimizer");
    expect_told(made("cat all-" + name), 0, {"24 tensors"});
  }
  for (const std::string name : {"w.npz", "w.safetensors", "all-w.h5", "all-w.npz", "all-w.safetensors"}) {
    made("import " + name + " --out from-" + name + ".h5");
    EXPECT_EQ(listed("from-" + name + ".h5"), saved) << name;
  }
  auto digest = [n = 0](const std::string& from) mutable {
    return after(support::expect_done(lockstep_on,
                                      "train digits --synthetic-samples 128 --threads 1 --evaluate-only --digest "
                                      "--init-from " +
                                          from + " --run-dir of-" + std::to_string(n++))
                     .out,
                 "digest ");
  };
  const std::string expected = digest("a/weights.h5");
  EXPECT_FALSE(expected.empty());
  for (const std::string& from : {std::string{"a"}, step, std::string{"w.h5"}, std::string{"all-w.npz"},
                                  std::string{"w.safetensors"}, std::string{"all-w.safetensors"}})
    EXPECT_EQ(digest(from), expected) << from;
  auto files = support::files_here();
  for (const std::string name : {"w.npz", "w.safetensors"})
    EXPECT_TRUE(files["./" + name] == files["./again-" + name]) << "of the file something else than of the checkpoint";
  EXPECT_TRUE(files["./w.h5"] == files["./from-w.safetensors.h5"]) << "a safetensors file tells the model, too";

  expect_refused(lockstep_on, {"ckpt export a --out w.npz", {"'w.npz' exists"}});
  made("export a --out w.npz --force --optimizer");
  files = support::files_here();
  EXPECT_TRUE(files["./w.npz"] == files["./all-w.npz"]) << "not replaced";

  // The newest whole one.
  fs::copy("a", "b", fs::copy_options::recursive);
  fs::copy(step, "b/checkpoints/step-000000003", fs::copy_options::recursive);

  overwrite("b/checkpoints/step-000000003/rank-00000.h5", 2500);
  EXPECT_EQ(digest("b"), expected);
  expect_told(ckpt("export b/checkpoints/step-000000003 --out damaged.npz"), 1, {"error: "});
  EXPECT_FALSE(fs::exists("damaged.npz"));
}

/// Such a file with a header of fewer than 256 bytes, and 8 of data.
std::string safetensors(const std::string& header) {
  return static_cast<char>(header.size()) + std::string(7, '\0') + header + "12345678";
}

TEST_F(Ckpt, RefusesWhatItCannotDo) {
  support::expect_done(lockstep_on, "train toy 1 --max-steps 1 --save-every 1 --run-dir a");
  made("export a --out w.npz");
  const std::string archive = support::files_here()["./w.npz"];
  write("flipped.npz", archive);
  overwrite("flipped.npz", archive.find("NUMPY") + 130);
  write("short.npz", archive.substr(0, 300));
  write("no.h5", "no weights");
  write("long.safetensors", "\377\377\377\377\377\377\377\177{}");
  write("0.safetensors", safetensors(R"({"a":)"));
  write("1.safetensors", safetensors(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}})"));
  write("2.safetensors", safetensors(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                                     R"("b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})"));
  write("3.safetensors", safetensors(R"({"a":{"dtype":"F32","shape":[99999999999],"data_offsets":[0,399999999996]}})"));
  write("f8.safetensors", safetensors(R"({"a":{"dtype":"F8_E4M3","shape":[9999999999999],"data_offsets":[0,8]}})"));
  write("f64.safetensors", safetensors(R"({"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}})"));
  fs::create_directory("empty");

  const support::Refused table[] = {
      {"ckpt", {"verb"}},
      {"ckpt lss", {"did you mean 'ls'"}},
      {"ckpt ls", {"missing"}},
      {"ckpt ls nothing", {"there is no checkpoint in 'nothing': there is no such folder"}},
      {"ckpt verify no.h5", {"there is no checkpoint in 'no.h5': it is a file"}},
      {"ckpt verify empty", {"there is no checkpoint in 'empty'", "--save-every N writes them"}},
      {"ckpt diff a nothing", {"nothing"}},
      {"ckpt diff a", {"missing"}},
      {"ckpt prune nothing", {"nothing"}},
      {"ckpt prune a --keep 0", {"--keep"}},
      {"ckpt prune a/checkpoints/step-000000001", {"step-000000001"}},
      {"ckpt bench", {"missing"}},
      {"ckpt bench nothing", {"nothing"}},
      {"ckpt bench . --like nothing", {"nothing"}},
      {"ckpt bench . --like a --bytes 1M", {"--bytes"}},
      {"ckpt bench . --bytes 1000T", {"--bytes"}},
      {"ckpt bench . --json nothing/f.json", {"nothing/f.json"}},
      {"ckpt cat a bais", {"no tensor 'bais'", "did you mean 'bias'"}},
      {"ckpt cat a --all", {"no effect without a tensor"}},
      {"ckpt cat empty", {"there is no checkpoint"}},
      {"ckpt cat nothing", {"cannot read 'nothing'"}},
      {"ckpt export a", {"out is missing"}},
      {"ckpt export a --out w.pt", {"does not say which format"}},
      {"ckpt export a --out nowhere/w.npz", {"No such file"}},
      {"ckpt import w.npz --out x.npz", {"not the name of an HDF5 file"}},
      {"ckpt import a --out x.h5", {"it is a folder"}},
      {"ckpt import no.h5 --out x.h5", {"is not an HDF5, .npz or .safetensors file"}},
      {"ckpt import short.npz --out x.h5", {"short.npz"}},
      {"ckpt import flipped.npz --out x.h5", {"CRC"}},
      {"ckpt import long.safetensors --out x.h5", {"its header claims"}},
      {"ckpt import f8.safetensors --out x.h5", {"stores a as something else than numbers"}},
      {"ckpt import f64.safetensors --out x.h5", {"stores a as float64"}},
  };
  for (support::Refused refused : table) {
    refused.says.push_back("expected: ");
    expect_refused(lockstep_on, refused);
  }
  for (const std::string file : {"0.safetensors", "1.safetensors", "2.safetensors", "3.safetensors"}) {
    expect_refused(lockstep_on,
                   {"ckpt import " + file + " --out x.h5", {"is not a complete safetensors file", "expected: "}});
    expect_refused(lockstep_on, {"train toy --run-dir bad --init-from " + file,
                                 {"is not a complete safetensors file", "(--init-from)\n"}});
  }
}

TEST_F(Ckpt, AFullDiskKeepsNothingOfAnExport) {
  trained("--max-steps 1 --val-split '' --run-dir a");
  const auto before = support::files_here();
  for (const std::string name : {"w.h5", "w.npz", "w.safetensors"}) {
    const io::FullDisk disk{100'000};
    expect_told(ckpt("export a/weights.h5 --out " + name), 3, {"error: ", name});
    EXPECT_TRUE(before == support::files_here()) << name;
  }
}

TEST_F(Ckpt, BenchTellsWhatACheckpointCosts) {
  support::expect_done(lockstep_on, "train toy 1 --save-every 1 --run-dir b");
  fs::create_directory("bench");

  for (const std::string flags : {"--bytes 3M", "--like b --repeats 1", "--bytes 1"}) {
    expect_told(made("bench bench --json bench.json " + flags), 0,
                {"plain write, fsync", "checkpoint", "training stands still", "plain read", "verify and read"});
    EXPECT_TRUE(names_in("bench").empty());
  }
}

}  // namespace
}  // namespace lockstep::training
