#include "io/folder.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "io/digest.hpp"
#include "unit/io/temporary_folder.hpp"

namespace lockstep::io {
namespace {

namespace fs = std::filesystem;
using core::ExitCode;

TEST(Folder, ItsFilesAreReadByTheirNames) {
  const TemporaryFolder folder;
  put(folder / "a", "text");
  const Folder opened{folder.path()};
  const File file = opened.open("a");
  EXPECT_EQ(read_text(file), "text");
  EXPECT_EQ(digest_of_file(file), digest_of_file(folder / "a"));
  EXPECT_EQ(file.path(), folder / "a");
  EXPECT_TRUE(opened.has("a"));
  EXPECT_FALSE(opened.has("b"));
  expect_error([&] { static_cast<void>(opened.open("b")); }, ExitCode::usage, {folder / "b", "No such file"});
}

// Opening a named pipe would wait.
TEST(Folder, OnlyRegularFilesAreOpened) {
  const TemporaryFolder folder;
  put(folder / "secret", "text");
  fs::create_directory(folder / "here");
  const Folder opened{folder / "here"};
  fs::create_symlink("../secret", folder / "here/link");
  fs::create_symlink("nowhere", folder / "here/dangling");
  fs::create_directory(folder / "here/folder");
  ASSERT_EQ(mkfifo((folder / "here/pipe").c_str(), 0600), 0);
  fs::create_symlink("/dev/zero", folder / "here/zero");
  EXPECT_TRUE(opened.has("dangling"));
  for (const auto& [name, words] : {std::pair{"link", "it is a symbolic link"},
                                    {"dangling", "it is a symbolic link"},
                                    {"zero", "it is a symbolic link"},
                                    {"folder", "it is a folder"},
                                    {"pipe", "it is not a regular file"},
                                    {"../secret", "not the name of a file in the folder"},
                                    {"/etc/passwd", "not the name of a file in the folder"},
                                    {"..", "not the name of a file in the folder"},
                                    {".", "not the name of a file in the folder"},
                                    {"", "not the name of a file in the folder"}})
    expect_error([&, name = name] { static_cast<void>(opened.open(name)); }, ExitCode::usage, {name, words});
}

TEST(Folder, APlainNameIsNoPath) {
  for (const std::string_view name : {"a", "rank-00000.h5", "..a", "a..b", "a b"}) EXPECT_TRUE(is_plain_name(name));
  for (const std::string_view name : {"", ".", "..", "/", "/a", "a/b", "../a", "a/"}) EXPECT_FALSE(is_plain_name(name));
  EXPECT_FALSE(is_plain_name({"a\0b", 3}));
  EXPECT_TRUE(is_plain_name(std::string(255, 'a')));
  EXPECT_FALSE(is_plain_name(std::string(256, 'a')));
}

TEST(Folder, ItStaysWhereItIsMovedTo) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "a");
  put(folder / "a/file", "first");
  fs::create_directory_symlink("a", folder / "link");
  const Folder opened{folder / "a"}, by_link{folder / "link"};
  EXPECT_TRUE(opened.is_in_place());
  fs::rename(folder / "a", folder / "b");
  EXPECT_FALSE(opened.is_in_place());
  EXPECT_FALSE(by_link.is_in_place());
  fs::create_directory(folder / "a");
  put(folder / "a/file", "second");
  EXPECT_FALSE(opened.is_in_place());
  EXPECT_EQ(read_text(opened.open("file")), "first");
  EXPECT_EQ(read_text(by_link.open("file")), "first");
}

TEST(Folder, WhatIsNoneIsRefused) {
  const TemporaryFolder folder;
  put(folder / "file", "text");
  expect_error([&] { Folder{folder / "file"}; }, ExitCode::usage, {folder / "file", "Not a directory"});
  expect_error([&] { Folder{folder / "none"}; }, ExitCode::usage, {folder / "none", "No such file"});
  const FewDescriptors none{0};
  expect_error([&] { Folder{folder.path()}; }, ExitCode::system, {folder.path(), "open files"});
}

}  // namespace
}  // namespace lockstep::io
