#include "core/pending.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <optional>
#include <set>

#include "core/result_path.hpp"
#include "unit/core/thrown.hpp"
#include "unit/io/temporary_folder.hpp"

namespace lockstep::core {
namespace {

namespace fs = std::filesystem;
using io::bytes_of;
using io::expect_error;
using io::FullDisk;
using io::get;
using io::LockedOut;
using io::put;
using io::TemporaryFolder;

TEST(WriteWhole, WritesAndReplaces) {
  const TemporaryFolder folder;
  write_whole(folder / "f", bytes_of("first"));
  EXPECT_EQ(get(folder / "f"), "first");
  write_whole(folder / "f", bytes_of("2nd"));
  EXPECT_EQ(get(folder / "f"), "2nd");
  write_whole(folder / "f", {});
  EXPECT_EQ(get(folder / "f"), "");
  EXPECT_EQ(folder.n_entries(), 1u);
}

TEST(WriteWhole, LeavesTheOldFileOnAFullDisk) {
  const TemporaryFolder folder;
  write_whole(folder / "f", bytes_of("old"));
  {
    const FullDisk full{1000};
    const std::string large(5000, 'n');
    expect_error([&] { write_whole(folder / "f", bytes_of(large)); }, ExitCode::system, {folder / "f", "too large"});
  }
  EXPECT_EQ(get(folder / "f"), "old");
  EXPECT_EQ(folder.n_entries(), 1u);
}

TEST(WriteWhole, NamesAPlaceThatCannotBeWrittenTo) {
  const TemporaryFolder folder;
  expect_error([&] { write_whole(folder / "none/f", {}); }, ExitCode::usage, {folder / "none/f", "No such file"});
  const LockedOut me{folder};
  expect_error([&] { write_whole(folder / "f", {}); }, ExitCode::usage, {folder / "f", "Permission denied"});
}

TEST(WriteWhole, DoesNotReplaceAFolder) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "d");
  expect_error([&] { write_whole(folder / "d", {}); }, ExitCode::usage, {folder / "d"});
  EXPECT_TRUE(fs::is_directory(folder / "d"));
  EXPECT_EQ(folder.n_entries(), 1u);
}

TEST(WriteWholeBelow, ReplacesALinkAndStaysInTheOpenFolder) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "a");
  put(folder / "precious", "another's");
  fs::create_symlink("../precious", folder / "a/f");
  const Descriptor opened{::open((folder / "a").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  write_whole_below(opened.get(), folder / "a/f", bytes_of("new"));
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(folder / "a/f")));
  EXPECT_EQ(get(folder / "precious"), "another's");
  fs::rename(folder / "a", folder / "b");
  fs::create_directory(folder / "a");
  write_whole_below(opened.get(), folder / "a/f", bytes_of("newer"));
  EXPECT_EQ(get(folder / "b/f"), "newer");
  EXPECT_TRUE(fs::is_empty(folder / "a"));
  fs::create_directory(folder / "b/d");
  expect_error([&] { write_whole_below(opened.get(), folder / "a/d", {}); }, ExitCode::system,
               {folder / "a/d", "Is a directory"});
  fs::remove(folder / "b/d");
  EXPECT_EQ(std::distance(fs::directory_iterator{folder / "b"}, {}), 1) << "nothing is left";
}

TEST(PendingFile, ReplacesALinkIfAsked) {
  const TemporaryFolder folder;
  put(folder / "precious", "another's");
  fs::create_symlink("precious", folder / "link");
  PendingFile pending{folder / "link", "", Links::replaced};
  pending.write(bytes_of("new"));
  pending.commit();
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(folder / "link")));
  EXPECT_EQ(get(folder / "link"), "new");
  EXPECT_EQ(get(folder / "precious"), "another's");
}

TEST(PendingFile, TakesItsNameWhenCommitted) {
  const TemporaryFolder folder;
  put(folder / "f", "old");
  {
    PendingFile pending{folder / "f"};
    put(pending.path(), "new");
    EXPECT_EQ(get(folder / "f"), "old");
    pending.commit();
  }
  EXPECT_EQ(get(folder / "f"), "new");
  EXPECT_EQ(folder.n_entries(), 1u);
}

TEST(PendingFile, LeavesNothingWhenNotCommitted) {
  const TemporaryFolder folder;
  { put(PendingFile{folder / "f"}.path(), "text"); }
  EXPECT_EQ(folder.n_entries(), 0u);
}

TEST(PendingFile, NamesTheFlagOfAPlaceThatCannotBeWrittenTo) {
  const TemporaryFolder folder;
  expect_error(
      [&] {
        PendingFile{folder / "none/f", "--out"};
      },
      ExitCode::usage, {folder / "none/f", "--out", "fix: make the folder"});
}

// Root could write there: a device would become a plain file.
TEST(PendingFile, ReplacesFilesOnly) {
  const TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  fs::create_symlink("pipe", folder / "link");
  fs::create_directory(folder / "sub");
  for (const char* const name : {"pipe", "link"})
    expect_error([&] { PendingFile(folder / name, "--out"); }, ExitCode::usage,
                 {folder / name, "--out", "not a regular file"});
  expect_error([&] { PendingFile(folder / "sub", "--out"); }, ExitCode::usage, {folder / "sub", "Is a directory"});
  EXPECT_EQ(folder.n_entries(), 3u);
}

TEST(PendingFile, WaitsForNoPipeThatIsNamedAsAManifest) {
  const TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder / "manifest.json").c_str(), 0600), 0);
  EXPECT_FALSE(is_shard_set(folder.path()));
}

TEST(PendingFile, FollowsALink) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "sub");
  put(folder / "sub/f", "old");
  fs::create_symlink("sub/f", folder / "link");
  write_whole(folder / "link", bytes_of("new"));
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(get(folder / "sub/f"), "new");
}

TEST(PendingFile, WritesWhatADanglingLinkNames) {
  const TemporaryFolder folder;
  fs::create_symlink("second", folder / "link");  // relative to the link's folder
  fs::create_symlink(folder / "target", folder / "second");
  write_whole(folder / "link", bytes_of("new"));
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(get(folder / "target"), "new");
}

TEST(PendingFile, RefusesLinksInACircle) {
  const TemporaryFolder folder;
  fs::create_symlink("other", folder / "link");
  fs::create_symlink("link", folder / "other");
  expect_error([&] { PendingFile(folder / "link", "--out"); }, ExitCode::usage, {folder / "link", "--out"});
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
}

TEST(CheckWritable, LeavesEverythingAsItIs) {
  const TemporaryFolder folder;
  put(folder / "f", "old");
  check_writable(folder / "f", "--out");
  check_writable(folder / "new", "--out");
  EXPECT_EQ(get(folder / "f"), "old");
  EXPECT_EQ(folder.n_entries(), 1u);
}

TEST(CheckWritable, RefusesAPlaceInASetOfShards) {
  const TemporaryFolder folder;
  put(folder / "manifest.json", "{\n  \"format\": \"lockstep-shards\",\n  \"version\": 1,\n");
  for (const char* const name : {"r.json", "manifest.json"})
    expect_error([&] { check_writable(folder / name, "--out"); }, ExitCode::usage, {"set of shards", "--out"});
  put(folder / "manifest.json", "{\n  \"format\": \"another\",\n  \"version\": 1,\n");
  EXPECT_NO_THROW(check_writable(folder / "r.json", "--out"));
}

TEST(CheckWritable, RefusesAWriteProtectedFile) {
  const TemporaryFolder folder;
  put(folder / "f", "kept");
  fs::permissions(folder / "f", fs::perms::owner_read | fs::perms::others_read);
  fs::permissions(folder.path(), fs::perms::all);
  const uid_t before = geteuid();
  ASSERT_TRUE(before != 0 || seteuid(65534) == 0) << "root may write to anything";
  expect_error([&] { check_writable(folder / "f", "--out"); }, ExitCode::usage, {folder / "f", "Permission denied"});
  ASSERT_EQ(seteuid(before), 0);
}

TEST(PendingFolder, AppearsWhenCommitted) {
  const TemporaryFolder folder;
  PendingFolder pending{folder / "out", std::nullopt, "--out"};
  EXPECT_FALSE(fs::exists(folder / "out"));
  EXPECT_EQ(fs::path{pending.path()}.parent_path(), fs::canonical(folder.path()));
  put(pending.path() + "/f", "content");
  fs::create_directory(pending.path() + "/sub");
  put(pending.path() + "/sub/g", "deep");
  pending.commit();
  EXPECT_EQ(get(folder / "out/f"), "content");
  EXPECT_EQ(get(folder / "out/sub/g"), "deep");
  EXPECT_EQ(folder.n_entries(), 1u);
}

TEST(PendingFolder, LeavesNothingWhenNotCommitted) {
  const TemporaryFolder folder;
  {
    const PendingFolder pending{folder / "out", std::nullopt, "--out"};
    put(pending.path() + "/f", "content");
  }
  EXPECT_EQ(folder.n_entries(), 0u);
}

TEST(PendingFolder, RefusesAnExistingNameUnlessItReplaces) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "out");
  const auto make = [&](const OldFiles& old_files) { PendingFolder{folder / "out", old_files, "--out"}; };
  expect_error([&] { make(std::nullopt); }, ExitCode::usage, {"out' exists", "--out", "--force replaces a set"});
  const auto error = core::thrown_by([&] { PendingFolder{folder / "out", std::nullopt, "--run-dir"}; });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->problem().fix, "choose another name, or remove it") << "--run-dir knows no --force";
  EXPECT_NO_THROW(make(OldFiles{std::in_place}));
  fs::remove(folder / "out");
  put(folder / "out", "a file");
  for (const OldFiles& old_files : {OldFiles{}, OldFiles{std::in_place}}) {
    expect_error([&] { make(old_files); }, ExitCode::usage,
                 {"not a folder", "--out", "fix: choose another name, or remove"});
    EXPECT_EQ(get(folder / "out"), "a file");
  }
  fs::remove(folder / "out");
  fs::create_symlink("nowhere", folder / "out");
  for (const OldFiles& old_files : {OldFiles{}, OldFiles{std::in_place}})
    expect_error([&] { make(old_files); }, ExitCode::usage, {"a link that leads nowhere", "fix: choose another name"});
}

TEST(PendingFolder, ReplacesOnlyWhenCommitted) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "out");
  put(folder / "out/old", "old");
  {
    const PendingFolder pending{folder / "out", OldFiles{{"old"}}, "--out"};
    put(pending.path() + "/new", "new");
    EXPECT_EQ(get(folder / "out/old"), "old");
  }
  EXPECT_EQ(get(folder / "out/old"), "old");
  PendingFolder pending{folder / "out", OldFiles{{"old"}}, "--out"};
  put(pending.path() + "/new", "new");
  pending.commit();
  EXPECT_FALSE(fs::exists(folder / "out/old"));
  EXPECT_EQ(get(folder / "out/new"), "new");
  EXPECT_EQ(folder.n_entries(), 1u);
}

TEST(PendingFolder, RefusesToReplaceWhatIsNotOfTheOldOne) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "out/notes");
  put(folder / "out/a", "old");
  put(folder / "out/thesis.txt", "years of work");
  const auto make = [&](std::set<std::string> old_files) {
    PendingFolder{folder / "out", OldFiles{std::move(old_files)}, "--force"};
  };
  expect_error([&] { make({"a"}); }, ExitCode::usage, {folder / "out", "--force", "'notes' and 1 more", "fix: move"});
  expect_error(
      [&] {
        make({"a", "notes", "thesis.txt"});
      },
      ExitCode::usage, {"contains 'notes'"});  // a folder is not a file
  EXPECT_EQ(get(folder / "out/thesis.txt"), "years of work");
  EXPECT_EQ(folder.n_entries(), 1u);
}

TEST(PendingFolder, KeepsWhatCameIntoTheOldOneMeanwhile) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "out");
  put(folder / "out/old", "old");
  PendingFolder pending{folder / "out", OldFiles{{"old"}}, "--out"};
  put(folder / "out/thesis.txt", "years of work");
  testing::internal::CaptureStderr();
  pending.commit();
  EXPECT_NE(testing::internal::GetCapturedStderr().find("'thesis.txt' was added to"), std::string::npos);
  EXPECT_TRUE(fs::is_empty(folder / "out"));
  std::size_t n_kept = 0;
  for (const auto& entry : fs::recursive_directory_iterator{folder.path()})
    n_kept += entry.path().filename() == "thesis.txt" ? 1 : 0;
  EXPECT_EQ(n_kept, 1u);
}

TEST(PendingFolder, KeepsWhatAppearedMeanwhile) {
  const TemporaryFolder folder;
  {
    PendingFolder pending{folder / "out", std::nullopt, "--out"};
    fs::create_directory(folder / "out");
    put(folder / "out/f", "somebody else's");
    expect_error([&] { pending.commit(); }, ExitCode::system, {folder / "out", "another program"});
  }
  EXPECT_EQ(get(folder / "out/f"), "somebody else's");
  EXPECT_EQ(folder.n_entries(), 1u);
}

TEST(PendingFolder, AcceptsSlashesAtTheEndAndLinks) {
  const TemporaryFolder folder;
  PendingFolder first{folder / "out///", std::nullopt, "--out"};
  first.commit();
  EXPECT_TRUE(fs::is_directory(folder / "out"));
  fs::create_directory_symlink("out", folder / "link");
  PendingFolder second{folder / "link", OldFiles{std::in_place}, "--out"};
  put(second.path() + "/f", "through the link");
  second.commit();
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(get(folder / "out/f"), "through the link");
  EXPECT_EQ(folder.n_entries(), 2u);
}

TEST(PendingFolder, NamesTheFlagOfAPlaceThatCannotBeWrittenTo) {
  const TemporaryFolder folder;
  put(folder / "file", "");
  const auto make = [&](const std::string& name) { PendingFolder{folder / name, std::nullopt, "--out"}; };
  expect_error([&] { make("none/out"); }, ExitCode::usage, {"none/out", "--out", "No such file"});
  expect_error([&] { make("file/out"); }, ExitCode::usage, {"file/out", "--out", "Not a directory"});
  const LockedOut me{folder};
  expect_error([&] { make("out"); }, ExitCode::usage, {"out", "--out", "Permission denied"});
}

TEST(SyncToDisk, TakesFilesAndFolders) {
  const TemporaryFolder folder;
  put(folder / "f", "x");
  EXPECT_NO_THROW(sync_to_disk(folder / "f"));
  EXPECT_NO_THROW(sync_to_disk(folder.path()));
  expect_error([&] { sync_to_disk(folder / "none"); }, ExitCode::system, {folder / "none"});
}

}  // namespace
}  // namespace lockstep::core
