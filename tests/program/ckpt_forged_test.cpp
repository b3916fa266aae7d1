// Checkpoints whose digests are right and which no Lockstep has written: every command that reads them says in one
// message which field is wrong, and ends with 2. What is in the folders of others stays there.
#include <sys/stat.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "checkpoint/folder.hpp"
#include "io/digest.hpp"
#include "support/lockstep_program.hpp"
#include "support/text.hpp"

namespace lockstep::training {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using support::Ended;
using support::expect_told;
using support::has;
using support::lockstep_on;
using support::words_of;

std::string file(const std::string& path) { return support::files_here()["./" + path]; }

class Forged : public support::InFolder {
 protected:
  Forged() {
    support::expect_done(lockstep_on, "train toy 2 --synthetic-samples 64 --save-every 1 --run-dir r");
    fs::copy("r", "whole", fs::copy_options::recursive);
    index_ = file(newest + "/index.json");
  }

  /// Text in place of the index, with its digest.
  static void seal(const std::string& folder, const std::string& text) {
    write(folder + "/index.json", text);
    write(folder + "/DONE", io::digest_of(std::as_bytes(std::span{text})) + "\n");
  }
  void forge(const std::string& pointer, const Json& value) const {
    Json json = Json::parse(index_);
    json[Json::json_pointer{pointer}] = value;
    seal(newest, json.dump(1) + "\n");
  }
  /// Whatever reads it says so in one message.
  static void expect_all_refuse(std::vector<std::string> says) {
    const Ended verified = lockstep_on(words_of("ckpt verify r"));
    expect_told(verified, 2,
                {says.front(), "r/checkpoints/step-000000004",
                 "fix: resume from the newest that is whole: lockstep train RECIPE --resume "
                 "r/checkpoints/step-000000002 --run-dir NEW\n"});
    says.push_back("expected: ");
    for (const std::string line : {"ckpt cat r", "ckpt cat r weight", "ckpt export r --out w.npz", "ckpt diff r whole",
                                   "ckpt diff whole r", "train toy 3 --synthetic-samples 64 --resume r --run-dir s",
                                   "train toy 3 --synthetic-samples 64 --init-from r --run-dir s"})
      expect_refused(lockstep_on, {line, says, 1});
    expect_refused(lockstep_on, {"train toy 3 --synthetic-samples 64 --resume r --run-dir s", says, 3});
  }

  static inline const std::string newest = "r/checkpoints/step-000000004";
  std::string index_;
};

/// One of the pieces that have several rows.
constexpr const char* piece = "/files/0/pieces/0";

TEST_F(Forged, WhatAnIndexCannotSayIsNamedByItsField) {
  const std::string deep = "/files/0/pieces/0/shape";
  const struct {
    std::string pointer;
    Json value;
    std::string says;
  } table[] = {
      {"/files/0/name", "../other/rank-00000.h5", "index.json: files[0].name is '../other/rank-00000.h5'"},
      {"/files/0/name", "/etc/passwd", "index.json: files[0].name is '/etc/passwd'"},
      {"/files/0/name", "..", "index.json: files[0].name is '..'"},
      {"/files/0/name", "index.json", "index.json: files[0].name is 'index.json'"},
      {"/files/0/name", 1, "index.json: files[0].name is 1"},
      {"/files/0/bytes", -1, "index.json: files[0].bytes is -1"},
      {"/files/0/digest", "abc", "index.json: files[0].digest is 'abc'"},
      {"/files", nullptr, "index.json: files is null"},
      {deep, Json::array(), "index.json: files[0].pieces[0].shape is a list"},
      {deep, {-1}, "index.json: files[0].pieces[0].shape[0] is -1"},
      {deep, {0}, "index.json: files[0].pieces[0].shape[0] is 0"},
      {deep, {std::uint64_t{1} << 40, std::uint64_t{1} << 40}, "index.json: files[0].pieces[0] has too many elements"},
      {deep, {7, 7, 7}, "index.json: files[0].pieces[0] is cut into "},
      {std::string{piece} + "/n_rows_here", std::uint64_t{1} << 60, "files[0].pieces[0].n_rows_here is 1152921504"},
      {std::string{piece} + "/n_rows_here", 1000, "index.json: files[0].pieces[0].n_rows_here is 1000"},
      {std::string{piece} + "/first_row", 1000, "index.json: files[0].pieces[0]."},
      {std::string{piece} + "/tensor", "", "index.json: files[0].pieces[0].tensor is ''"},
      {std::string{piece} + "/tensor", "parameter/more", "/parameter/more"},
      {"/content", nullptr, "index.json: content is null"},
      {"/content", Json::array(), "index.json: content is a list"},
      {"/content/ranks", 0, "index.json: content.ranks is 0"},
      {"/content/ranks", nullptr, "index.json: content.ranks is null"},
      {"/content/ranks", std::uint64_t{1} << 63, "index.json: content.ranks is 9223372036854775808"},
      {"/content/recipe", 3, "index.json: content.recipe is 3"},
      {"/content/recipe/model", 3, "index.json: content.recipe.model is 3"},
      {"/content/recipe/lr", Json::object(), "index.json: content.recipe.lr is an object"},
      {"/content/recipe/a\nb", 1, "index.json: content.recipe has the key 'a"},
      {"/content/state", nullptr, "index.json: content.state is null"},
      {"/content/state/ledger", -3, "index.json: content.state.ledger is -3"},
      {"/content/state/epoch", "2", "index.json: content.state.epoch is '2'"},
      {"/content/state/step", std::uint64_t{1} << 60, "index.json: content.state.step is 1152921504606846976"},
      {"/content/state/of_epoch/steps", 1'000'000, "index.json: content.state.of_epoch.steps is 1000000"},
      {"/content/state/of_epoch/samples", 1'000'000, "index.json: content.state.of_epoch.samples is 1000000"},
      {"/content/state/epoch", 77, "index.json: content.state.step is "},
      {"/files", Json::array(), "index.json: files is a list"},
      {"/content/state/losses", "", "index.json: content.state.losses has 0 digits"},
      {"/content/state/losses", std::string(80, '0'), "index.json: content.state.losses has 80 digits"},
      {"/content/state/ledger", 5, "index.json: content.state.ledger is 5"},
      {"/content/state/learning_rate", -1, "content.state.learning_rate is -1"},
      {"/content/state/loss_scale",
       {{"value", 0}, {"good_steps", 0}, {"updates", 0}},
       "content.state.loss_scale.value is 0"},
      {"/content/state/loss_scale",
       {{"value", 1}, {"good_steps", std::uint64_t{1} << 32}, {"updates", 4}},
       "content.state.loss_scale.good_steps is 4294967296"},
      {"/content/state/loss_scale",
       {{"value", 1}, {"good_steps", 3}, {"updates", 2}},
       "content.state.loss_scale.good_steps is 3"},
      {"/content/state/losses", "xyz", "index.json: content.state.losses is 'xyz'"},
      {"/content/epoch_steps", 0, "index.json: content.epoch_steps is 0"},
      {"/schema", "other", "index.json: schema is 'other'"},
      {"/schema_version", "1", "index.json: schema_version is '1'"},
  };
  for (const auto& [pointer, value, says] : table) {
    SCOPED_TRACE(pointer + " " + value.dump());
    forge(pointer, value);
    expect_all_refuse({says});
  }
}

TEST_F(Forged, AnIndexOfANewerFormatNeedsANewerLockstep) {
  forge("/schema_version", 2);
  const std::string says = "index.json' has format version 2";
  expect_told(lockstep_on(words_of("ckpt verify r")), 2,
              {says,
               "fix: use a newer Lockstep; or resume from the newest that is whole: lockstep train RECIPE --resume "
               "r/checkpoints/step-000000002 --run-dir NEW\n"});
  expect_told(lockstep_on(words_of("ckpt verify r/checkpoints/step-000000004")), 2, {"\nfix: use a newer Lockstep\n"});
  expect_refused(lockstep_on, {"ckpt cat r", {says, "fix: use a newer Lockstep"}});
}

TEST_F(Forged, WhatIsExpectedIsCounted) {
  forge("/files", Json::array());
  expect_refused(lockstep_on, {"ckpt cat r", {"expected: a list of at least 1 item\n"}});
}

// Within an epoch only the set and its order tell which ledger is right.
TEST_F(Forged, ALedgerOfOtherSamplesIsNamedBeforeTheRunGoesOn) {
  const std::string toy = "train toy 3 --synthetic-samples 64 --resume part --run-dir s";
  support::expect_done(lockstep_on,
                       "train toy 2 --synthetic-samples 64 --max-steps 3 --save-every 1 --resume auto "
                       "--run-dir part");
  const std::string path = "part/checkpoints/step-000000003";
  Json json = Json::parse(file(path + "/index.json"));
  json["content"]["state"]["ledger"] = json["content"]["state"]["ledger"].get<std::uint64_t>() + 1;
  seal(path, json.dump(1) + "\n");
  for (const int n_ranks : {1, 2})
    expect_refused(lockstep_on, {toy, {"index.json: content.state.ledger is ", "after 1 step of the epoch"}, n_ranks});
  json["content"]["state"]["ledger"] = json["content"]["state"]["ledger"].get<std::uint64_t>() - 1;
  seal(path, json.dump(1) + "\n");
  support::expect_done(lockstep_on, toy);
}

TEST_F(Forged, WhatIsNestedDeeplyTwiceOrNoJsonIsNamed) {
  const std::string deep = R"({"schema":)" + std::string(200'000, '[') + std::string(200'000, ']') + "}";
  seal(newest, deep);
  expect_all_refuse({"index.json: is nested more than 64 deep"});
  std::string within = index_;
  const std::size_t at = within.find("\"recipe\": {") + 11;
  seal(newest, within.insert(at, "\"more\": " + std::string(200'000, '[') + std::string(200'000, ']') + ","));
  expect_all_refuse({"index.json: is nested more than 64 deep"});
  std::string twice = index_;
  seal(newest, twice.insert(twice.find("\"ranks\""), "\"ranks\": 1, "));
  expect_all_refuse({"index.json: content.ranks occurs twice"});
  seal(newest, "{]");
  expect_all_refuse({"index.json: is not JSON: line 1, column 2"});
}

// Where the content lacks what a training keeps it holds tensors all the same.
TEST_F(Forged, AContentOfSomethingElseHasTensorsAndIsNothingToGoOnFrom) {
  for (const std::string key : {"ranks", "state", "epoch_steps", "recipe"}) {
    Json json = Json::parse(index_);
    json["content"].erase(key);
    seal(newest, json.dump(1) + "\n");
    support::expect_done(lockstep_on, "ckpt cat r");
    expect_refused(lockstep_on, {"train toy 3 --synthetic-samples 64 --resume r --run-dir s",
                                 {"index.json: content." + key + " is missing"}});
  }
}

TEST_F(Forged, WhatIsNoFileOfTheFolderIsNotRead) {
  const std::string rank = newest + "/rank-00000.h5";
  ASSERT_TRUE(fs::exists(rank));
  fs::rename(rank, "elsewhere.h5");
  const std::pair<std::string, std::function<void()>> table[] = {
      {"it is a symbolic link", [&] { fs::create_symlink("../../../elsewhere.h5", rank); }},
      {"it is not a regular file", [&] { ASSERT_EQ(mkfifo(rank.c_str(), 0600), 0); }},
      {"it is a folder", [&] { fs::create_directory(rank); }},
  };
  for (const auto& [says, make] : table) {
    make();
    expect_all_refuse({"rank-00000.h5': " + says});
    expect_told(lockstep_on({"ckpt", "ls", "r"}), 2, {"rank-00000.h5': " + says});
    fs::remove(rank);
  }
  fs::rename(newest + "/index.json", "elsewhere.json");
  fs::create_symlink("../../../elsewhere.json", newest + "/index.json");
  expect_all_refuse({"index.json': it is a symbolic link"});
}

TEST_F(Forged, AFileOfOtherTensorsThanItsIndexTellsOfIsRefused) {
  Json json = Json::parse(index_);
  fs::copy_file("r/weights.h5", newest + "/rank-00000.h5", fs::copy_options::overwrite_existing);
  json["files"][0]["bytes"] = fs::file_size(newest + "/rank-00000.h5");
  json["files"][0]["digest"] = io::digest_of_file(newest + "/rank-00000.h5");
  seal(newest, json.dump(1) + "\n");
  expect_all_refuse({"rank-00000.h5"});
}

class ForgedStep : public support::InFolder {};

TEST_F(ForgedStep, IsNotMadeAgain) {
  expect_told(lockstep_on(words_of("train toy --synthetic-samples 128 --lr 1e30 --run-dir r"), 2), 1,
              {"--replay r/bad-step-"});
  std::string bad;
  for (const auto& entry : fs::directory_iterator{"r"})
    if (const std::string name = entry.path().filename(); name.starts_with("bad-step-")) bad = "r/" + name;
  const std::string index = file(bad + "/index.json");
  const struct {
    std::string pointer;
    Json value;
    std::string says;
  } table[] = {
      {"/content/ranks", 0, "content.ranks is 0"},
      {"/content/ranks", "2", "content.ranks is '2'"},
      {"/content/ranks", std::uint64_t{1} << 63, "content.ranks is 9223372036854775808"},
      {"/content/recipe", nullptr, "content.recipe is null"},
      {"/content/recipe/batch", {{"a", 1}}, "content.recipe.batch is an object"},
      {"/content/bad_step", nullptr, "content.bad_step is null"},
      {"/content/bad_step", Json::object(), "content.bad_step.learning_rate is missing"},
      {"/content/bad_step/learning_rate", -1, "content.bad_step.learning_rate is -1"},
      {"/content/bad_step/seen/0/rank", 2, "content.bad_step.seen[0].rank is 2"},
      {"/content/bad_step/seen/0/samples", {"a"}, "content.bad_step.seen[0].samples[0] is 'a'"},
      {"/content/state/of_epoch/steps", 4, "content.state.of_epoch.steps is 4"},
      {"/content/state/ledger", -1, "content.state.ledger is -1"},
  };
  for (const auto& [pointer, value, says] : table) {
    Json json = Json::parse(index);
    json[Json::json_pointer{pointer}] = value;
    const std::string text = json.dump(1) + "\n";
    write(bad + "/index.json", text);
    write(bad + "/DONE", io::digest_of(std::as_bytes(std::span{text})) + "\n");
    expect_refused(lockstep_on, {"train --replay " + bad, {"index.json: " + says, "expected: "}, 1});
  }
  for (const std::string key : {"ranks", "recipe", "state", "epoch_steps"}) {
    Json json = Json::parse(index);
    json["content"].erase(key);
    const std::string text = json.dump(1) + "\n";
    write(bad + "/index.json", text);
    write(bad + "/DONE", io::digest_of(std::as_bytes(std::span{text})) + "\n");
    expect_refused(lockstep_on, {"train --replay " + bad, {"index.json: content." + key + " is missing"}, 1});
  }
}

// Folders that are named as checkpoints: a link to one of another run, and one with a user's notes.
class LeftAlone : public support::InFolder {
 protected:
  LeftAlone() {
    const std::string line = "train toy --synthetic-samples 128 --batch 32 --save-every 1 --keep 9 --epochs ";
    support::expect_done(lockstep_on, line + "1 --run-dir other");
    support::expect_done(lockstep_on, line + "3 --run-dir r");
    fs::create_directory("r/checkpoints/step-000000001");
    write("r/checkpoints/step-000000001/thesis.txt", "years of work");
    fs::create_directory_symlink("../../other/checkpoints/step-000000004", "r/checkpoints/step-000000002");
    before_ = others();
  }

  static std::map<std::string, std::string> others() {
    auto files = support::files_here();
    std::erase_if(
        files, [](const auto& one) { return !one.first.starts_with("./other") && !has(one.first, "step-000000001"); });
    EXPECT_GE(files.size(), 4u);
    return files;
  }
  void expect_there() const {
    EXPECT_EQ(others(), before_);
    EXPECT_TRUE(fs::is_symlink("r/checkpoints/step-000000002"));
    support::expect_done(lockstep_on, "ckpt verify other");
  }

  std::map<std::string, std::string> before_;
};

TEST_F(LeftAlone, ByPrune) {
  const Ended pruned = support::expect_done(lockstep_on, "ckpt prune r --keep 1");
  expect_told(pruned, 0,
              {"warning: 'r/checkpoints/step-000000001' is left alone, as it is not a checkpoint made by Lockstep: it "
               "contains 'thesis.txt'",
               "warning: 'r/checkpoints/step-000000002' is left alone, as it is not a checkpoint made by Lockstep: it "
               "is a symbolic link",
               "\n1 kept\n"});
  expect_there();
}

TEST_F(LeftAlone, ByARunThatKeepsOne) {
  const Ended ended = support::expect_done(
      lockstep_on,
      "train toy --synthetic-samples 128 --batch 32 --save-every 1 --keep 1 --epochs 6 --run-dir r --resume auto");
  expect_told(ended, 0,
              {"'r/checkpoints/step-000000001' is left alone, as it is not a checkpoint made by Lockstep: it contains "
               "'thesis.txt'"});
  const std::string words =
      "step-000000002' is left alone, as it is not a checkpoint made by Lockstep: it is a symbolic link";
  EXPECT_NE(ended.err.find(words), std::string::npos) << ended.err;
  EXPECT_EQ(ended.err.find(words), ended.err.rfind(words)) << "told more than once: " << ended.err;
  expect_there();
}

TEST_F(LeftAlone, WhateverItsNameSays) {
  fs::create_directory_symlink("../../other/checkpoints/step-000000004", "r/checkpoints/step-000000999");
  const std::string says =
      "warning: 'r/checkpoints/step-000000999' is left alone, as it is not a checkpoint made by "
      "Lockstep: it is a symbolic link";
  for (const std::string verb : {"verify", "ls"}) {
    const Ended ended = lockstep_on({"ckpt", verb, "r"});
    expect_told(ended, 1, {says, "step-000000012", "step-000000001' is incomplete"});
    EXPECT_FALSE(has(ended.out, "step-000000999")) << ended.out;
  }
  const std::string run = "train toy --synthetic-samples 128 --batch 32 --save-every 1 --keep 9 --run-dir ";
  expect_told(support::expect_done(lockstep_on, run + "r --epochs 4 --resume auto"), 0,
              {says, "resumed epoch 4, after step 12"});
  expect_there();
  fs::create_directories("links/checkpoints");
  fs::create_directory_symlink("../../r/checkpoints/step-000000012", "links/checkpoints/step-000000012");
  expect_told(lockstep_on(words_of(run + "links --epochs 4 --resume auto")), 1,
              {"no checkpoint in 'links' is whole, out of 1"});
}

// They may be those of another run.
TEST_F(LeftAlone, BehindALinkInPlaceOfTheFolder) {
  fs::create_directory("linked");
  fs::create_directory_symlink("../r/checkpoints", "linked/checkpoints");
  for (const std::string folder : {"linked", "linked/checkpoints", "linked/checkpoints/"})
    expect_refused(lockstep_on,
                   {"ckpt prune --keep 1 " + folder,
                    {"is a symbolic link, and nothing is removed through a link", "lockstep ckpt prune /"}});
  const Ended ended = support::expect_done(
      lockstep_on,
      "train toy --synthetic-samples 128 --batch 32 --save-every 1 --keep 1 --epochs 5 --run-dir linked --resume auto");
  const std::string words = "no checkpoint in 'linked/checkpoints' is removed: nothing is removed through a symbolic";
  expect_told(ended, 0, {"resumed epoch 4, after step 12", words});
  EXPECT_EQ(ended.err.find(words), ended.err.rfind(words)) << "told more than once: " << ended.err;
  for (const std::string step : {"04", "08", "12", "16", "20"})
    EXPECT_TRUE(fs::exists("r/checkpoints/step-0000000" + step + "/DONE")) << step;
  expect_there();
}

// The checkpoint of the step that a link has the name of is not written through it.
TEST_F(LeftAlone, ByARunThatWouldSaveThere) {
  const std::string run = "train toy --synthetic-samples 128 --batch 32 --save-every 1 --keep 9 --run-dir new ";
  support::expect_done(lockstep_on, run + "--max-steps 2");
  fs::create_directory_symlink("../../other", "new/checkpoints/step-000000004");
  const Ended ended = support::expect_done(lockstep_on, run + "--epochs 2 --resume auto");
  EXPECT_TRUE(has(ended.err, "step-000000004' is a symbolic link, which no checkpoint replaces; training continues"))
      << ended.err;
  EXPECT_TRUE(fs::exists("new/checkpoints/step-000000008/DONE"));
  expect_there();
}

TEST_F(LeftAlone, NotWhatAKilledReplacementHasLeft) {
  const std::string name = "r/checkpoints/step-000000012", left = name + ".old-0123456789abcdef0123";
  fs::copy(name, left, fs::copy_options::recursive);
  fs::rename("r/checkpoints/step-000000008", "r/checkpoints/step-000000008.old-0123456789abcdef0123");
  const Ended pruned = support::expect_done(lockstep_on, "ckpt prune r --keep 2");
  expect_told(pruned, 0,
              {"removed '" + left + "'", "step-000000008' has its name again: a killed run was about to replace it"});
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(name));
  EXPECT_TRUE(fs::exists("r/checkpoints/step-000000008/DONE"));
  expect_there();
}

}  // namespace
}  // namespace lockstep::training
