#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <set>
#include <thread>

#include "checkpoint/folder.hpp"
#include "checkpoint/reader.hpp"
#include "checkpoint/writer.hpp"
#include "unit/io/temporary_folder.hpp"

namespace {

std::vector<std::string>* synced = nullptr;  ///< files that fsync() was called for; null: not recorded

}  // namespace

/// Replaces the C library's.
extern "C" int fsync(int descriptor) {
  if (synced != nullptr)
    synced->push_back(std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(descriptor)).filename());
  return static_cast<int>(syscall(SYS_fsync, descriptor));
}

namespace lockstep::checkpoint {
namespace {

namespace fs = std::filesystem;
using core::ExitCode;
using io::expect_error;
using io::get;
using io::put;
using io::TemporaryFolder;

const runtime::Communicator& alone() {
  const runtime::Communicator& world = runtime::Communicator::alone();
  return world;
}

const std::vector<Box> boxes{
    {.tensor = "parameter/a", .shape = {4, 6, 5}, .n_outer = 4, .n_rows = 6, .n_inner = 5, .rows = {0, 6}},
    whole("parameter/b.weight", {3, 2}),
    {.tensor = "momentum/a", .shape = {4, 6, 5}, .n_outer = 1, .n_rows = 4, .n_inner = 30, .rows = {0, 4}}};

std::set<std::string> left_alone;  // what was reported

void number(std::size_t i, std::span<float> values) {
  std::iota(values.begin(), values.end(), 1000 * static_cast<float>(i));
}

std::string write(const std::string& folder, std::uint64_t step) {
  const std::string path = folder + "/" + name_of(step);
  std::optional<RankFile> file;
  write_checkpoint(alone(), path, R"({"step": 7})", boxes, number, file);
  return path;
}

TEST(Checkpoint, ComesBackAsItWasWritten) {
  const TemporaryFolder folder;
  const std::string path = write(folder / "checkpoints", 7);
  EXPECT_TRUE(is_checkpoint(path));
  const Checkpoint checkpoint = open_checkpoint(alone(), path);
  EXPECT_EQ(checkpoint.content(), R"({"step":7})");
  EXPECT_EQ(checkpoint.n_files(), 1u);
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    std::vector<float> expected(boxes[i].n_elements()), found(expected.size());
    number(i, expected);
    checkpoint.read(boxes[i], found);
    EXPECT_EQ(found, expected) << boxes[i].tensor;
  }
  EXPECT_EQ(checkpoint.find("parameter/b.weight")->shape, (std::vector<std::uint64_t>{3, 2}));
  EXPECT_FALSE(checkpoint.find("parameter/c"));
}

TEST(Checkpoint, TensorsOfAllSizesHaveTheirPlaces) {
  const TemporaryFolder folder;
  std::vector<Box> mixed;  // below and above HDF5's alignment, and the size that starts a thread
  for (const std::uint64_t n_rows : {3u, 5000u, 7u, 300000u, 1u, 4096u, 600000u, 2u})
    mixed.push_back(whole("parameter/" + std::to_string(mixed.size()), {n_rows}));
  const std::string path = folder / name_of(1);
  std::optional<RankFile> file;
  write_checkpoint(alone(), path, "{}", mixed, number, file);
  const Checkpoint checkpoint = open_checkpoint(alone(), path);
  for (std::size_t i = 0; i < mixed.size(); ++i) {
    std::vector<float> expected(mixed[i].n_elements()), found(expected.size());
    number(i, expected);
    checkpoint.read(mixed[i], found);
    EXPECT_EQ(found, expected) << mixed[i].tensor;
  }
}

TEST(Checkpoint, DoesNotGiveWhatItDoesNotHave) {
  const TemporaryFolder folder;
  const Checkpoint checkpoint{write(folder.path(), 1)};
  std::vector<float> values(120);
  expect_error([&] { checkpoint.read(whole("parameter/b.weight", {120}), values); }, ExitCode::failed,
               {"parameter/b.weight has a different shape"});
  expect_error([&] { checkpoint.read(whole("parameter/c", {120}), values); }, ExitCode::failed, {"parameter/c"});
}

// Every byte of every file counts, even HDF5's own.
TEST(Checkpoint, AnyFlippedByteIsFound) {
  const TemporaryFolder folder;
  const std::string path = write(folder.path(), 1);
  for (const auto& entry : fs::directory_iterator{path}) {
    const std::string whole_file = get(entry.path().string());
    for (std::size_t at = 0; at < whole_file.size(); ++at) {
      std::string flipped = whole_file;
      flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
      put(entry.path().string(), flipped);
      expect_error([&] { static_cast<void>(open_checkpoint(alone(), path)); }, ExitCode::failed, {path});
      if (HasFailure()) FAIL() << entry.path() << " at " << at;
    }
    put(entry.path().string(), whole_file);
  }
  static_cast<void>(open_checkpoint(alone(), path));
}

TEST(Checkpoint, TheNewestWholeOneIsTaken) {
  const TemporaryFolder folder;
  EXPECT_FALSE(open_first_whole(alone(), [&] { return find_checkpoints(folder / "none"); }));
  for (const std::uint64_t step : {9u, 10u, 1000000000u, 1000000001u}) write(folder.path(), step);
  fs::remove(folder / "step-1000000001/DONE");
  fs::resize_file(folder / "step-1000000000/rank-00000.h5", 100);
  testing::internal::CaptureStderr();
  const auto newest = open_first_whole(alone(), [&] { return find_checkpoints(folder.path()); });
  const std::string words = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(newest);
  EXPECT_EQ(newest->path(), folder / "step-000000010");
  EXPECT_NE(words.find("step-1000000001' is incomplete"), std::string::npos) << words;
  EXPECT_NE(words.find("step-1000000000' is damaged: rank-00000.h5 has 100 bytes"), std::string::npos) << words;
  for (const char* const step : {"step-000000010", "step-000000009"}) fs::remove(folder / step + std::string{"/DONE"});
  EXPECT_FALSE(open_first_whole(alone(), [&] { return find_checkpoints(folder.path()); }));
}

TEST(Checkpoint, ReplacesOneOfItsNameOnlyWhenItIsWhole) {
  const TemporaryFolder folder;
  const std::string path = write(folder.path(), 1);
  const auto fails = [](std::size_t i, std::span<float> values) {
    if (i == 2) throw core::Error{ExitCode::system, {.what = "no more"}};
    number(i, values);
  };
  std::optional<RankFile> file;
  expect_error([&] { write_checkpoint(alone(), path, "{}", boxes, fails, file); }, ExitCode::system, {"no more"});
  EXPECT_EQ(folder.n_entries(), 1u);
  EXPECT_EQ(open_checkpoint(alone(), path).content(), R"({"step":7})");
  write_checkpoint(alone(), path, "{}", boxes, number, file);
  EXPECT_EQ(folder.n_entries(), 1u);
  EXPECT_EQ(open_checkpoint(alone(), path).content(), "{}");
}

// What does not survive three failures does not survive a thousand. The same for a write and a sync.
TEST(Checkpoint, IsWholeOrNotThereWhereWritesFail) {
  const TemporaryFolder folder;
  const std::string path = folder / name_of(1);
  for (const char* const place : {"write", "sync"}) {
    for (const auto& [times, is_there] :
         {std::pair{"1:3", true}, {"2:3", true}, {"1:1000", false}, {"2:1000", false}}) {
      const std::string fault = std::string{"io:0:"} + place + ":" + times;
      fs::remove_all(path);
      runtime::Drill drill{runtime::parse_faults(fault, runtime::FaultTaker::train)};
      std::optional<RankFile> file;
      const auto error =
          core::complaint_of([&] { write_checkpoint(alone(), path, "{}", boxes, number, file, &drill); });
      EXPECT_TRUE(drill.unreached().empty()) << fault;
      // The second sync is that of the index, which is not tried again.
      const bool is_expected = is_there && fault != "io:0:sync:2:3";
      EXPECT_EQ(!error, is_expected) << fault;
      EXPECT_EQ(folder.n_entries(), is_expected ? 1u : 0u) << fault;
      if (error) {
        EXPECT_NE(std::string{error->what()}.find("Input/output error"), std::string::npos) << error->what();
      }
      if (is_expected) static_cast<void>(open_checkpoint(alone(), path));
    }
  }
}

// Rank 0 cannot sync data that are still in the memory of another node.
TEST(Checkpoint, AFileOfARankIsOnTheDiskBeforeTheIndexTellsOfIt) {
  const TemporaryFolder folder;
  std::vector<std::string> names;
  synced = &names;
  write(folder.path(), 1);
  synced = nullptr;
  ASSERT_FALSE(names.empty());
  EXPECT_EQ(names.front(), "rank-00000.h5");
  EXPECT_GT(std::ranges::count_if(names, [](const std::string& name) { return name.starts_with("index.json"); }), 0);
}

TEST(BackgroundSave, WritesWhatThereWasWhenItBegan) {
  const TemporaryFolder folder;
  const std::string at_once = write(folder.path(), 1), path = folder / "step-000000002";
  std::optional<RankFile> file;
  for (int i = 0; i < 2; ++i) {  // also replacing an older one
    BackgroundSave save{alone(), path, R"({"step": 7})", boxes, number, file};
    EXPECT_EQ(is_checkpoint(path), i == 1);
    while (!save.may_advance(save.n_done())) std::this_thread::yield();
    EXPECT_FALSE(save.advance());
    EXPECT_TRUE(save.advance());
  }
  for (const char* const name : {"/index.json", "/DONE", "/rank-00000.h5"})
    EXPECT_EQ(get(path + name), get(at_once + name)) << name;
  EXPECT_EQ(folder.n_entries(), 2u);
}

TEST(BackgroundSave, LeavesNothingUnlessItIsComplete) {
  const TemporaryFolder folder;
  const std::string path = folder / "step-000000002";
  std::optional<RankFile> file;
  { const BackgroundSave never_advanced{alone(), path, "{}", boxes, number, file}; }
  EXPECT_EQ(folder.n_entries(), 0u);
  {
    const io::FullDisk full{200};
    BackgroundSave save{alone(), path, "{}", boxes, number, file};
    expect_error([&] { save.advance(); }, ExitCode::system, {"rank-00000.h5"});
    std::optional<RankFile> unused;  // it cannot be laid out either
    expect_error([&] { BackgroundSave{alone(), path, "{}", boxes, number, unused}; }, ExitCode::system,
                 {"rank-00000.h5"});
  }
  EXPECT_EQ(folder.n_entries(), 0u);
}

// As on a node without the file system of rank 0's folder.
TEST(RankFile, NamesARankThatDoesNotSeeTheFolder) {
  const TemporaryFolder folder;
  expect_error(
      [&] {
        RankFile{folder / "elsewhere", 3, boxes};
      },
      ExitCode::usage, {"rank 3 on ", "does not see the folder", "elsewhere", "that the nodes share"});
  EXPECT_EQ(folder.n_entries(), 0u);
}

TEST(Checkpoint, TheNewestSoundOneStays) {
  const TemporaryFolder folder;
  for (const std::uint64_t step : {1u, 2u, 3u, 4u, 5u, 6u}) write(folder.path(), step);
  remove_older(folder / "step-000000006", 2, 3, left_alone);
  EXPECT_EQ(list_checkpoints(folder.path()),
            (std::vector{folder / "step-000000006", folder / "step-000000005", folder / "step-000000003"}));
  remove_older(folder / "step-000000006", 2, 5, left_alone);
  EXPECT_EQ(list_checkpoints(folder.path()), (std::vector{folder / "step-000000006", folder / "step-000000005"}));
}

TEST(Checkpoint, WhatWasToBeReplacedComesBackIfNothingTookItsPlace) {
  const TemporaryFolder folder;
  for (const std::uint64_t step : {1u, 2u, 3u}) write(folder.path(), step);
  const auto set_aside = [&](std::uint64_t step) {
    const std::string name = folder / name_of(step);
    fs::rename(name, name + ".old-0123456789abcdef0123");
  };
  set_aside(2);
  set_aside(3);
  write(folder.path(), 3);
  fs::remove(folder / "step-000000001/DONE");
  set_aside(1);
  restore_replaced(folder.path());
  EXPECT_EQ(list_checkpoints(folder.path()), (std::vector{folder / "step-000000003", folder / "step-000000002"}));
  restore_replaced(folder / "nowhere");
}

TEST(Checkpoint, WhatIsSetAsideIsNoneAnyMore) {
  const TemporaryFolder folder;
  for (const std::uint64_t step : {1u, 2u, 3u}) write(folder.path(), step);
  give_name(folder / "step-000000003", "best");
  EXPECT_EQ(set_aside_newer(folder.path(), 1), (std::vector{folder / "step-000000003", folder / "step-000000002"}));
  EXPECT_EQ(list_checkpoints(folder.path()), (std::vector{folder / "step-000000001"}));
  EXPECT_FALSE(is_checkpoint(folder / "best"));
  const std::vector aside{folder / "step-000000002.suspect", folder / "step-000000003.suspect"};
  EXPECT_EQ(list_set_aside(folder.path()), aside);
  write(folder.path(), 3);
  EXPECT_EQ(set_aside_newer(folder.path(), 1), (std::vector{folder / "step-000000003"})) << "once more";
  EXPECT_EQ(list_set_aside(folder.path()), aside);
}

TEST(Checkpoint, WhatWasVerifiedIsReadThoughItIsRemoved) {
  const TemporaryFolder folder;
  const std::string path = write(folder.path(), 1);
  const Checkpoint checkpoint = open_checkpoint(alone(), path), unverified{path};
  remove_checkpoint(path);
  EXPECT_EQ(folder.n_entries(), 0u);
  std::vector<float> expected(boxes[1].n_elements()), found(expected.size());
  number(1, expected);
  checkpoint.read(boxes[1], found);
  EXPECT_EQ(found, expected);
  EXPECT_FALSE(checkpoint.is_in_place());
  for (const auto& read : {std::function<void()>{[&] { unverified.read(boxes[1], found); }},
                           std::function<void()>{[&] { Checkpoint{path}; }}})
    expect_error(read, ExitCode::usage, {path, "has removed it meanwhile"});
}

// Between listing them and the first look at one.
TEST(Checkpoint, OthersAreListedWhereOneIsGone) {
  const TemporaryFolder folder;
  write(folder.path(), 1);
  testing::internal::CaptureStderr();
  const auto newest = open_first_whole(alone(), [&, n_lists = 0]() mutable {
    auto paths = list_checkpoints(folder.path());
    if (n_lists++ < 2) {
      write(folder.path(), static_cast<std::uint64_t>(n_lists) + 1);
      remove_checkpoint(paths.front());
    }
    return paths;
  });
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  ASSERT_TRUE(newest);
  EXPECT_EQ(newest->path(), folder / "step-000000003");
}

TEST(Checkpoint, OnlyWhatWasMadeHereIsRemoved) {
  const TemporaryFolder folder;
  const std::string path = write(folder / "other", 1), mine = folder / "step-000000001";
  fs::create_directory_symlink("other/step-000000001", mine);
  expect_error([&] { remove_checkpoint(mine); }, ExitCode::usage, {mine, "is not removed: it is a symbolic link"});
  static_cast<void>(open_checkpoint(alone(), path));
  for (const char* const name : {"notes.txt", "rank-00000.h5.bak", "rank-1.h5", "DONE2"}) {
    put(path + "/" + name, "text");
    expect_error([&] { remove_checkpoint(path); }, ExitCode::usage, {name});
    fs::remove(path + "/" + name);
  }
  fs::remove(path + "/DONE");
  fs::create_symlink("/etc/hostname", path + "/DONE");
  expect_error([&] { remove_checkpoint(path); }, ExitCode::usage, {"it contains 'DONE'"});
  fs::remove(path + "/DONE");
  fs::create_directory(path + "/rank-00001.h5");
  expect_error([&] { remove_checkpoint(path); }, ExitCode::usage, {"it contains 'rank-00001.h5'"});
  fs::remove(path + "/rank-00001.h5");
  remove_checkpoint(path);
  EXPECT_FALSE(fs::exists(path)) << "what is incomplete is removed";
}

// Newer ones do not count: a run that resumes from an older one may have a reason.
TEST(Checkpoint, OlderOnesAreRemoved) {
  const TemporaryFolder folder;
  for (const std::uint64_t step : {1u, 2u, 3u, 4u, 5u, 6u}) write(folder.path(), step);
  fs::create_directory(folder / "step-x");
  fs::remove(folder / "step-000000004/DONE");
  remove_older(folder / "step-000000005", 2, 1000, left_alone);
  EXPECT_EQ(list_checkpoints(folder.path()),
            (std::vector{folder / "step-000000006", folder / "step-000000005", folder / "step-000000003"}));
  EXPECT_TRUE(fs::exists(folder / "step-x"));
  remove_older(folder / "step-000000003", 1, 1000, left_alone);
  remove_older(folder / "step-000000005", 1, 1000, left_alone);
  EXPECT_EQ(list_checkpoints(folder.path()), (std::vector{folder / "step-000000006", folder / "step-000000005"}));
}

TEST(Checkpoint, WhatHasANameStays) {
  const TemporaryFolder folder;
  for (const std::uint64_t step : {1u, 2u, 3u}) write(folder.path(), step);
  give_name(folder / "step-000000001", "epoch-001");
  give_name(folder / "step-000000002", "best");
  give_name(folder / "step-000000001", "best");
  EXPECT_EQ(names_of(folder / "step-000000001"), (std::vector<std::string>{"best", "epoch-001"}));
  EXPECT_TRUE(names_of(folder / "step-000000002").empty());
  remove_older(folder / "step-000000003", 1, 1000, left_alone);
  EXPECT_EQ(list_checkpoints(folder.path()).size(), 2u);
  EXPECT_TRUE(is_checkpoint(folder / "best"));
  EXPECT_EQ(find_checkpoints(folder / "best"), (std::vector<std::string>{folder / "best"}));
  remove_checkpoint(folder / "step-000000001");
  EXPECT_EQ(folder.n_entries(), 1u) << "with its names";
  testing::internal::CaptureStderr();
  give_name(folder / "nowhere/step-000000001", "best");
  EXPECT_NE(testing::internal::GetCapturedStderr().find("cannot be kept as 'best'"), std::string::npos);
}

TEST(Checkpoint, AFolderThatCannotBeLookedThroughIsNoEmptyOne) {
  const TemporaryFolder folder;
  fs::create_directory_symlink("circle", folder / "circle");
  expect_error([&] { static_cast<void>(list_checkpoints(folder / "circle")); }, ExitCode::system, {"circle"});
}

}  // namespace
}  // namespace lockstep::checkpoint
