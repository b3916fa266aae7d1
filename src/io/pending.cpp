#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"
#include "io/file.hpp"

namespace lockstep::io {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_at(std::string_view action, const std::string& path, int error,
                          core::SourceLocation location = core::SourceLocation::current()) {
  core::fail_system(fmt::format("cannot {} '{}': {}", action, path, core::system_reason(error)), location);
}

/// Whether the error is about the place the user named, rather than about the system.
bool is_about_the_place(int error) {
  return error == ENOENT || error == ENOTDIR || error == EACCES || error == EPERM || error == EROFS ||
         error == EISDIR || error == ENAMETOOLONG;
}

[[noreturn]] void fail_to_create(const std::string& path, std::string_view flag, int error) {
  const std::string what = fmt::format("cannot write '{}': {}", path, core::system_reason(error));
  if (!is_about_the_place(error))
    throw core::Error{core::ExitCode::system,
                      {.what = what, .where = std::string{flag}, .fix = "make room, or name another place"}};
  core::fail_usage({.what = what,
                    .where = std::string{flag},
                    .expected = "a name in an existing folder that can be written to",
                    .fix = "make the folder, or name another place"});
}

/// Creates a sibling of `path` under a name nobody has: `create` makes it, or returns a negative number and sets errno.
template <class Create>
std::pair<std::string, int> create_sibling(const std::string& path, std::string_view kind, Create&& create) {
  constexpr int most_attempts = 1000;  // leftovers of killed processes, here or on other nodes
  int result = -1;
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    std::string name = fmt::format("{}.{}-{}-{}", path, kind, getpid(), attempt);
    result = create(name.c_str());
    if (result >= 0) return {std::move(name), result};
    if (errno != EEXIST) break;
  }
  return {std::string{}, result};
}

void rename_to(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) fail_at(fmt::format("rename '{}' to", from), to, errno);
}

std::string parent_of(const std::string& path) {
  const std::string parent = fs::path{path}.parent_path().string();
  return parent.empty() ? "." : parent;
}

void write_all(int descriptor, const std::string& path, std::span<const std::byte> content) {
  while (!content.empty()) {
    const auto n = ::write(descriptor, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_at("write", path, errno);
    content = content.subspan(static_cast<std::size_t>(n));
  }
}

/// Links on the way are followed, so that the temporary folder lies on the file system of the final one.
std::string resolve(const std::string& path) {
  std::error_code error;
  fs::path resolved = fs::weakly_canonical(fs::absolute(path, error), error);
  if (error) resolved = path;
  if (!resolved.has_filename()) resolved = resolved.parent_path();
  return resolved.string();
}

void refuse_existing(const std::string& path, bool replace, std::string_view flag) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (!fs::exists(status)) return;
  if (!replace) {
    core::fail_usage({.what = fmt::format("'{}' exists", path),
                      .where = std::string{flag},
                      .expected = "the name of a new folder",
                      .fix = "choose another name, or replace it with --force"});
  }
  if (!fs::is_directory(status)) {
    core::fail_usage({.what = fmt::format("'{}' is no folder, so it is not replaced by one", path),
                      .where = std::string{flag},
                      .expected = "the name of a new folder or of one to replace"});
  }
}

void sync_tree(const std::string& folder) try {
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator{folder})
    if (entry.is_regular_file() || entry.is_directory()) sync_to_disk(entry.path().string());
  sync_to_disk(folder);
} catch (const fs::filesystem_error& error) {
  fail_at("list", folder, error.code().value());
}

/// Whether there is something of this name, be it a link to nothing.
bool exists(const std::string& path) {
  std::error_code error;
  return fs::exists(fs::symlink_status(path, error));
}

/// A rename would put a plain file in the place of a device, a pipe or a socket.
void refuse_irregular(const std::string& path, std::string_view flag) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) fail_to_create(path, flag, EISDIR);
  if (!fs::exists(status) || fs::is_regular_file(status)) return;
  core::fail_usage({.what = fmt::format("cannot write '{}': it is no regular file", path),
                    .where = std::string{flag},
                    .expected = "the name of a new file or of one to replace"});
}

}  // namespace

PendingFile::PendingFile(const std::string& final_path, std::string_view flag) : final_path_{resolve(final_path)} {
  refuse_irregular(final_path, flag);
  auto [temporary, raw] = create_sibling(
      final_path_, "tmp", [](const char* name) { return ::open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666); });
  if (raw < 0) fail_to_create(final_path, flag, errno);
  const core::Descriptor closed{raw};
  temporary_ = std::move(temporary);
}

PendingFile::~PendingFile() {
  if (!is_committed_) unlink(temporary_.c_str());
}

void PendingFile::commit() {
  sync_to_disk(temporary_);
  rename_to(temporary_, final_path_);
  is_committed_ = true;
  sync_to_disk(parent_of(final_path_));
}

void write_whole(const std::string& path, std::span<const std::byte> content) {
  PendingFile pending{path};
  {
    const core::Descriptor descriptor{::open(pending.path().c_str(), O_WRONLY | O_CLOEXEC)};
    if (!descriptor) fail_at("write", path, errno);
    write_all(descriptor.get(), path, content);
  }
  pending.commit();
}

PendingFolder::PendingFolder(const std::string& final_path, bool replace, std::string_view flag)
    : final_path_{resolve(final_path)}, replace_{replace} {
  refuse_existing(final_path_, replace, flag);
  auto [temporary, result] = create_sibling(final_path_, "tmp", [](const char* name) { return mkdir(name, 0777); });
  if (result < 0) fail_to_create(final_path, flag, errno);
  temporary_ = std::move(temporary);
}

PendingFolder::~PendingFolder() {
  if (is_committed_) return;
  try {
    fs::remove_all(temporary_);
  } catch (const std::exception& error) {
    core::log_warning(fmt::format("'{}' is left behind: {}", temporary_, error.what()));
  }
}

void PendingFolder::commit() {
  sync_tree(temporary_);
  std::string old;
  if (replace_ && exists(final_path_)) {
    // An empty folder as the place holder: rename() puts the old one over it.
    old = create_sibling(final_path_, "old", [](const char* name) { return mkdir(name, 0777); }).first;
    if (old.empty()) fail_at("set aside", final_path_, errno);
    rename_to(final_path_, old);
  }
  if (std::rename(temporary_.c_str(), final_path_.c_str()) != 0) {
    const int error = errno;
    if (!old.empty() && std::rename(old.c_str(), final_path_.c_str()) != 0)
      core::log_warning(fmt::format("what was in '{}' before is in '{}'", final_path_, old));
    fail_at("create", final_path_, error);
  }
  is_committed_ = true;
  sync_to_disk(parent_of(final_path_));
  std::error_code error;
  if (!old.empty()) fs::remove_all(old, error);
  if (error) core::log_warning(fmt::format("'{}' is left behind: {}", old, error.message()));
}

void begin_sync(const std::string& path) noexcept {
  const core::Descriptor descriptor{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (descriptor) (void)sync_file_range(descriptor.get(), 0, 0, SYNC_FILE_RANGE_WRITE);
}

void sync_to_disk(const std::string& path) {
  const core::Descriptor descriptor{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!descriptor) fail_at("open", path, errno);
  // EINVAL: a file system that does not sync folders.
  if (fsync(descriptor.get()) != 0 && errno != EINVAL) fail_at("sync", path, errno);
}

}  // namespace lockstep::io
