#include "io/folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>

#include "core/error.hpp"
#include "core/shortage.hpp"
#include "io/retry.hpp"

namespace lockstep::io {

bool is_plain_name(std::string_view name) noexcept {
  constexpr std::size_t longest = 255;  // NAME_MAX
  return !name.empty() && name != "." && name != ".." && name.size() <= longest &&
         name.find_first_of(std::string_view{"/\0", 2}) == std::string_view::npos;
}

Folder::Folder(const std::string& path)
    : path_{path}, descriptor_{with_retries([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); })} {
  if (descriptor_) return;
  const int error = errno;
  core::refuse_shortage(fmt::format("cannot open '{}'", path_), "", error);
  core::fail_usage({.what = fmt::format("cannot read folder '{}': {}", path_, core::system_reason(error)),
                    .expected = "a folder that can be read",
                    .fix = "check its name and permissions"});
}

std::string Folder::path_of(const std::string& name) const { return fmt::format("{}/{}", path_, name); }

std::string Folder::identity() const {
  struct stat here {};
  return fstat(descriptor_.get(), &here) == 0 ? fmt::format("{}:{}", here.st_dev, here.st_ino) : "";
}

bool Folder::is_in_place() const noexcept {
  struct stat here {
  }, there{};
  return fstat(descriptor_.get(), &here) == 0 && stat(path_.c_str(), &there) == 0 && here.st_ino == there.st_ino &&
         here.st_dev == there.st_dev;
}

bool Folder::has(const std::string& name) const noexcept {
  struct stat status {};
  return fstatat(descriptor_.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
}

File Folder::open(const std::string& name) const {
  constexpr int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW;
  const auto refuse = [&](std::string_view why, std::string_view expected) {
    core::fail_usage({.what = fmt::format("cannot read '{}': {}", path_of(name), why),
                      .expected = std::string{expected},
                      .fix = "copy the file itself to this place"});
  };
  if (!is_plain_name(name)) refuse("it is not the name of a file in the folder", "a name without a path");
  core::Descriptor opened{with_retries([&] { return ::openat(descriptor_.get(), name.c_str(), flags); })};
  if (!opened && errno == ELOOP) refuse("it is a symbolic link, which is not followed", "a regular file");
  return {path_of(name), std::move(opened)};
}

}  // namespace lockstep::io
