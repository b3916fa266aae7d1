#include "io/file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>

#include "temporary_folder.hpp"

namespace lockstep::io {
namespace {

using core::ExitCode;

TEST(File, ReadsAnyRange) {
  const TemporaryFolder folder;
  put(folder / "f", "0123456789");
  const File file{folder / "f"};
  EXPECT_EQ(file.path(), folder / "f");
  EXPECT_EQ(file.size().value, 10u);
  std::string text(4, ' ');
  file.read_at(3, std::as_writable_bytes(std::span{text}));
  EXPECT_EQ(text, "3456");
  file.read_at(6, std::as_writable_bytes(std::span{text}));
  EXPECT_EQ(text, "6789");
  file.read_at(10, {});
}

TEST(File, NamesPathAndRangeWhenItEndsBefore) {
  const TemporaryFolder folder;
  put(folder / "f", "0123456789");
  const File file{folder / "f"};
  std::string text(4, ' ');
  const auto bytes = std::as_writable_bytes(std::span{text});
  expect_error([&] { file.read_at(7, bytes); }, ExitCode::usage, {folder / "f", "has 10 bytes", "[7, 11)"});
  expect_error([&] { file.read_at(1000, bytes); }, ExitCode::usage, {folder / "f", "has 10 bytes", "[1000, 1004)"});
}

TEST(File, RefusesWhatIsNoFile) {
  const TemporaryFolder folder;
  expect_error([&] { File{folder / "none"}; }, ExitCode::usage, {folder / "none", "No such file"});
  expect_error([&] { File{folder.path()}; }, ExitCode::usage, {folder.path(), "folder"});
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  expect_error([&] { File{folder / "pipe"}; }, ExitCode::usage, {folder / "pipe", "regular"});
}

TEST(File, RefusesWhatMayNotBeRead) {
  const TemporaryFolder folder;
  put(folder / "f", "secret");
  const LockedOut me{folder};
  expect_error([&] { File{folder / "f"}; }, ExitCode::usage, {folder / "f", "Permission denied"});
}

TEST(File, ReportsAnErrorThatStays) {
  const File memory{"/proc/self/mem"};  // nothing is mapped at address 0: EIO
  std::string text(4, ' ');
  expect_error([&] { memory.read_at(0, std::as_writable_bytes(std::span{text})); }, ExitCode::system,
               {"/proc/self/mem", "[0, 4)", "Input/output error"});
}

TEST(File, CanBeReadAfterItsCacheIsDropped) {
  const TemporaryFolder folder;
  put(folder / "f", std::string(100000, 'z'));
  const File file{folder / "f"};
  file.drop_cache();
  std::string text(100000, ' ');
  file.read_at(0, std::as_writable_bytes(std::span{text}));
  EXPECT_EQ(text, std::string(100000, 'z'));
}

TEST(ReadText, GivesAllOfItUpToALimit) {
  const TemporaryFolder folder;
  const std::string text{"one\0two\n", 8};
  put(folder / "f", text);
  EXPECT_EQ(read_text(folder / "f"), text);
  EXPECT_EQ(read_text(folder / "f", {8}), text);
  expect_error([&] { static_cast<void>(read_text(folder / "f", {7})); }, ExitCode::usage, {folder / "f", "8 bytes"});
  put(folder / "empty", "");
  EXPECT_EQ(read_text(folder / "empty"), "");
}

}  // namespace
}  // namespace lockstep::io
