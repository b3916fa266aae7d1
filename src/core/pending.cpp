#include "core/pending.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/result_path.hpp"
#include "core/shortage.hpp"

namespace lockstep::core {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_at(std::string_view action, const std::string& path, int error,
                          SourceLocation location = SourceLocation::current()) {
  const std::string failure = fmt::format("cannot {} '{}'", action, path);
  refuse_shortage(failure, "", error);
  fail_system(fmt::format("{}: {}", failure, system_reason(error)), location);
}

/// Whether the error concerns the place that the user named, rather than the system.
bool is_about_the_place(int error) {
  return error == ENOENT || error == ENOTDIR || error == EACCES || error == EPERM || error == EROFS ||
         error == EISDIR || error == ENAMETOOLONG || error == ELOOP;
}

[[noreturn]] void fail_to_create(const std::string& path, std::string_view flag, int error) {
  refuse_shortage(fmt::format("cannot write '{}'", path), flag, error);
  const std::string what = fmt::format("cannot write '{}': {}", path, system_reason(error));
  if (!is_about_the_place(error))
    throw Error{ExitCode::system,
                {.what = what, .where = std::string{flag}, .fix = "make room, or name another place"}};
  fail_usage({.what = what,
              .where = std::string{flag},
              .expected = "a name in an existing folder that can be written to",
              .fix = "make the folder, or name another place"});
}

void rename_to(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) fail_at(fmt::format("rename '{}' to", from), to, errno);
}

std::string parent_of(const std::string& path) {
  const std::string parent = fs::path{path}.parent_path().string();
  return parent.empty() ? "." : parent;
}

/// Follows links on the way, so that the temporary folder is on the file system of the final one.
std::string resolve(const std::string& path) {
  std::error_code error;
  fs::path resolved = fs::weakly_canonical(fs::absolute(path, error), error);
  if (error) resolved = path;
  if (!resolved.has_filename()) resolved = resolved.parent_path();
  return resolved.string();
}

/// Returns names in `folder` that are not among `known`, or are folders; sorted.
std::vector<std::string> find_foreign(const std::string& folder, const std::set<std::string>& known) try {
  std::vector<std::string> foreign;
  for (const fs::directory_entry& entry : fs::directory_iterator{folder}) {
    std::string name = entry.path().filename().string();
    if (!known.contains(name) || fs::is_directory(entry.symlink_status())) foreign.push_back(std::move(name));
  }
  std::ranges::sort(foreign);
  return foreign;
} catch (const fs::filesystem_error& error) {
  fail_at("list", folder, error.code().value());
}

void refuse_existing(const std::string& path, const OldFiles& old_files, std::string_view flag) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (!fs::exists(status)) return;
  if (!fs::is_directory(status)) {
    fail_usage({.what = fmt::format("'{}' exists and is {}, so a folder does not replace it", path,
                                    fs::is_symlink(status) ? "a link that leads nowhere" : "not a folder"),
                .where = std::string{flag},
                .expected = "the name of a new folder or of one to replace",
                .fix = "choose another name, or remove it"});
  }
  if (!old_files) {
    fail_usage({.what = fmt::format("'{}' exists", path),
                .where = std::string{flag},
                .expected = "the name of a new folder",
                .fix = flag == "--out" ? "choose another name; --force replaces a set of shards"
                                       : "choose another name, or remove it"});
  }
  const std::vector<std::string> foreign = find_foreign(path, *old_files);
  if (foreign.empty()) return;
  fail_usage(
      {.what = fmt::format("'{}' is not replaced: it contains '{}'{}, which belongs to something else", path,
                           foreign.front(), foreign.size() == 1 ? "" : fmt::format(" and {} more", foreign.size() - 1)),
       .where = std::string{flag},
       .expected = "a folder that contains only what is to be replaced",
       .fix = "move what you want to keep elsewhere, or choose another name"});
}

/// Removes the old files of a folder that was set aside. Files that were added since the check stay.
void remove_old(const std::string& folder, const std::string& final_path, const std::set<std::string>& files) {
  std::error_code error;
  const std::vector<std::string> foreign = find_foreign(folder, files);
  for (const std::string& file : files)
    if (!std::ranges::binary_search(foreign, file) && !fs::remove(fs::path{folder} / file, error) && error) break;
  if (!error && rmdir(folder.c_str()) != 0) error = {errno, std::generic_category()};
  if (!error) return;
  log_warning(foreign.empty() ? fmt::format("cannot remove '{}': {}", folder, error.message())
                              : fmt::format("'{}' was added to '{}' meanwhile, and is now in '{}'", foreign.front(),
                                            final_path, folder));
}

void sync_tree(const std::string& folder) try {
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator{folder})
    if (entry.is_regular_file() || entry.is_directory()) sync_to_disk(entry.path().string());
  sync_to_disk(folder);
} catch (const fs::filesystem_error& error) {
  fail_at("list", folder, error.code().value());
}

/// Swaps the two atomically; returns false if the file system cannot.
bool swap_places(const std::string& a, const std::string& b) {
  return renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0;
}

/// Whether the name exists, even as a dangling link.
bool exists(const std::string& path) {
  std::error_code error;
  return fs::exists(fs::symlink_status(path, error));
}

/// A rename would put a plain file in place of a device, a pipe, a socket, or a link in a circle.
void refuse_irregular(const std::string& path, std::string_view flag) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::none) fail_to_create(path, flag, error.value());
  if (fs::is_directory(status)) fail_to_create(path, flag, EISDIR);
  if (!fs::exists(status) || fs::is_regular_file(status)) return;
  fail_usage({.what = fmt::format("cannot write '{}': it is not a regular file", path),
              .where = std::string{flag},
              .expected = "the name of a new file or of one to replace"});
}

std::string place_of(const std::string& path, Links links) {
  if (links == Links::followed) return resolve(behind_links(path));
  return (fs::path{resolve(parent_of(path))} / fs::path{path}.filename()).string();
}

void write_all(const Descriptor& file, std::span<const std::byte> content, const std::string& path) {
  while (!content.empty()) {
    const auto n = ::write(file.get(), content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_at("write", path, errno);
    content = content.subspan(static_cast<std::size_t>(n));
  }
}

// EINVAL: a file system that does not sync folders.
void sync_open(int descriptor, const std::string& path) {
  if (fsync(descriptor) != 0 && errno != EINVAL) fail_at("sync", path, errno);
}

}  // namespace

PendingFile::PendingFile(const std::string& final_path, std::string_view flag, Links links)
    : final_path_{place_of(final_path, links)} {
  if (links == Links::followed) {
    refuse_link_of_others(final_path, flag);
    refuse_irregular(final_path, flag);
  }
  refuse_irreplaceable(final_path_, flag);
  temporary_ = make_temporary_file(final_path_);
  if (!temporary_) fail_to_create(final_path, flag, errno);
}

PendingFile::~PendingFile() {
  if (!is_committed_) unlink(path().c_str());
}

void PendingFile::write(std::span<const std::byte> content) { write_all(temporary_.descriptor, content, final_path_); }

void PendingFile::commit() {
  sync_to_disk(path());
  rename_to(path(), final_path_);
  is_committed_ = true;
  sync_to_disk(parent_of(final_path_));
}

void write_whole(const std::string& path, std::span<const std::byte> content) {
  PendingFile pending{path};
  pending.write(content);
  pending.commit();
}

void write_whole_below(int folder, const std::string& path, std::span<const std::byte> content) {
  const std::string name = fs::path{path}.filename().string();
  const Temporary made = make_temporary_file(name, folder);
  if (!made) fail_at("write", path, errno);
  try {
    write_all(made.descriptor, content, path);
    sync_open(made.descriptor.get(), path);
    if (renameat(folder, made.path.c_str(), folder, name.c_str()) != 0) fail_at("replace", path, errno);
  } catch (const Error&) {
    unlinkat(folder, made.path.c_str(), 0);
    throw;
  }
  sync_open(folder, parent_of(path));
}

void check_writable(const std::string& path, std::string_view flag) {
  refuse_in_shard_set(path, flag);
  refuse_link_of_others(path, flag);
  const fs::path resolved = resolve(behind_links(path));
  remove_leftovers(parent_of(resolved), resolved.filename().string());
  const PendingFile trial{path, flag};
  // A rename could replace a write-protected file, but that is never wanted.
  if (exists(resolved) && faccessat(AT_FDCWD, resolved.c_str(), W_OK, AT_EACCESS) != 0)
    fail_to_create(path, flag, errno);
}

PendingFolder::PendingFolder(const std::string& final_path, OldFiles old_files, std::string_view flag)
    : final_path_{resolve(final_path)}, old_files_{std::move(old_files)} {
  refuse_existing(final_path_, old_files_, flag);
  refuse_irreplaceable(final_path_, flag);
  remove_leftovers(parent_of(final_path_), fs::path{final_path_}.filename().string());
  temporary_ = make_temporary_folder(final_path_, S_IRWXU);  // until it is whole no other user may put a link into it
  if (!temporary_) fail_to_create(final_path, flag, errno);
}

PendingFolder::~PendingFolder() {
  if (is_committed_) return;
  try {
    fs::remove_all(path());
  } catch (const std::exception& error) {
    log_warning(fmt::format("cannot remove '{}': {}", path(), error.what()));
  }
}

void PendingFolder::commit() {
  sync_tree(path());
  const mode_t mask = umask(0);
  umask(mask);
  if (fchmod(temporary_.descriptor.get(), 0777 & ~mask) != 0) fail_at("set permissions of", path(), errno);
  Temporary old;
  if (old_files_ && exists(final_path_)) {
    // Makes an empty folder as the place holder: rename() puts the old one over it.
    old = make_folder_for_old(final_path_);
    if (!old) fail_at("set aside", final_path_, errno);
    if (swap_places(path(), final_path_)) return end_replacing(old);
    if (std::rename(final_path_.c_str(), old.path.c_str()) != 0) {
      const int error = errno;
      rmdir(old.path.c_str());
      fail_at(fmt::format("rename '{}' to", final_path_), old.path, error);
    }
  }
  if (std::rename(path().c_str(), final_path_.c_str()) != 0) {
    const int error = errno;
    if (old && std::rename(old.path.c_str(), final_path_.c_str()) != 0)
      log_warning(fmt::format("the previous content of '{}' is now in '{}'", final_path_, old.path));
    if (error == ENOTEMPTY || error == EEXIST)
      throw Error{ExitCode::system,
                  {.what = fmt::format("another program has made '{}' meanwhile", final_path_),
                   .where = "",
                   .expected = "a name that no other program uses",
                   .fix = "let only one job write it, or choose another name"}};
    fail_at("create", final_path_, error);
  }
  is_committed_ = true;
  sync_to_disk(parent_of(final_path_));
  if (old) remove_old(old.path, final_path_, *old_files_);
}

// Called after an atomic swap.
void PendingFolder::end_replacing(const Temporary& old) {
  is_committed_ = true;
  sync_to_disk(parent_of(final_path_));
  const bool is_aside = std::rename(path().c_str(), old.path.c_str()) == 0;
  if (!is_aside) log_warning(fmt::format("the previous content of '{}' is now in '{}'", final_path_, path()));
  if (is_aside) remove_old(old.path, final_path_, *old_files_);
}

void begin_sync(const std::string& path) noexcept {
  const Descriptor descriptor{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (descriptor) (void)sync_file_range(descriptor.get(), 0, 0, SYNC_FILE_RANGE_WRITE);
}

void sync_to_disk(const std::string& path) {
  const Descriptor descriptor{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!descriptor) fail_at("open", path, errno);
  sync_open(descriptor.get(), path);
}

}  // namespace lockstep::core
