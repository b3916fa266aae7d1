#include "core/result_path.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/error.hpp"

namespace lockstep::core {
namespace {

namespace fs = std::filesystem;

/// Links that Linux does not follow if fs.protected_symlinks is set: those of other users in folders such as /tmp.
bool is_link_of_others(const fs::path& link) {
  struct stat own {
  }, folder{};
  const fs::path parent = link.has_parent_path() ? link.parent_path() : ".";
  if (lstat(link.c_str(), &own) != 0 || !S_ISLNK(own.st_mode) || stat(parent.c_str(), &folder) != 0) return false;
  const bool is_shared = (folder.st_mode & S_ISVTX) != 0 && (folder.st_mode & S_IWOTH) != 0;
  return is_shared && own.st_uid != geteuid() && own.st_uid != folder.st_uid;
}

/// The target of a link, which may be relative to the link.
fs::path target_of(const fs::path& link) {
  std::error_code ignored;
  return link.parent_path() / fs::read_symlink(link, ignored);  // an absolute target replaces the preceding part
}

/// Calls `visit` for each link on the way; for links in a circle the result is one of them.
template <class Visit>
fs::path follow(fs::path file, Visit visit) {
  constexpr int most_links = 40;
  std::error_code ignored;
  for (int i = 0; i < most_links && fs::is_symlink(fs::symlink_status(file, ignored)); ++i) {
    visit(file);
    file = target_of(file);
  }
  return file;
}

/// The folder of the file or folder `path`; that of "d/" is d.
std::string folder_of(const std::string& path) {
  std::error_code ignored;
  fs::path place = fs::absolute(path, ignored).lexically_normal();
  if (!place.has_filename()) place = place.parent_path();
  return fs::path{behind_links(place.string())}.parent_path().string();
}

}  // namespace

std::string behind_links(const std::string& path) {
  return follow(path, [](const fs::path&) {}).string();
}

void refuse_link_of_others(const std::string& path, std::string_view flag) {
  follow(path, [&](const fs::path& link) {
    if (is_link_of_others(link))
      fail_usage({.what = fmt::format("'{}' is a link made by another user in a shared folder", link.string()),
                  .where = std::string{flag},
                  .expected = "a file that you own, or a new name",
                  .fix = "name another place"});
  });
}

void refuse_irreplaceable(const std::string& path, std::string_view flag) {
  const std::string parent = fs::path{path}.parent_path().string();
  struct statx there {
  }, folder{};
  constexpr unsigned wanted = STATX_BASIC_STATS;
  if (statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, wanted, &there) != 0 ||
      statx(AT_FDCWD, parent.empty() ? "." : parent.c_str(), 0, wanted, &folder) != 0)
    return;
  const bool is_of_others = geteuid() != 0 && geteuid() != there.stx_uid && geteuid() != folder.stx_uid;
  const bool is_kept = (folder.stx_mode & S_ISVTX) != 0 && is_of_others;
  if (!is_kept && (there.stx_attributes & (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND)) == 0) return;
  fail_usage({.what = fmt::format("'{}' cannot be replaced: it is {}", path,
                                  is_kept ? "owned by another user, in a shared folder" : "immutable (see lsattr)"),
              .where = std::string{flag},
              .expected = "one that you own, or a new name",
              .fix = "name another place"});
}

bool is_shard_set(const std::string& folder) {
  constexpr std::string_view begin = "{\n  \"format\": \"lockstep-shards\"";
  const fs::path path = fs::path{folder} / "manifest.json";
  std::error_code none;
  if (!fs::is_regular_file(path, none)) return false;  // a named pipe would be waited for
  std::ifstream manifest{path, std::ios::binary};
  std::string text(begin.size(), '\0');
  return manifest.read(text.data(), static_cast<std::streamsize>(text.size())) && text == begin;
}

void refuse_in_shard_set(const std::string& path, std::string_view flag) {
  const std::string folder = folder_of(path);
  if (!is_shard_set(folder)) return;
  fail_usage({.what = fmt::format("'{}' would be inside a set of shards", path),
              .where = std::string{flag},
              .expected = "a place outside of sets: a manifest vouches for all that is in its set",
              .fix = fmt::format("name a place outside of '{}'", folder)});
}

}  // namespace lockstep::core
