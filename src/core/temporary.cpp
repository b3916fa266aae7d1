#include "core/temporary.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <vector>

#include "core/fnv.hpp"
#include "core/log.hpp"

namespace lockstep::core {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view making = ".tmp-";
constexpr std::string_view set_aside = ".old-";
constexpr std::size_t kernel_digits = 8;
constexpr std::size_t random_digits = 12;

/// Identifies the running kernel, because only its own locks show whether a writer is alive.
std::string kernel_key() {
  std::string id;
  if (std::ifstream file{"/proc/sys/kernel/random/boot_id"}; !std::getline(file, id)) {
    std::array<char, 256> host{};
    gethostname(host.data(), host.size() - 1);
    id = host.data();
  }
  return fmt::format("{:08x}", fnv1a(id) & 0xffffffff);
}

std::string random_key() {
  std::uint64_t number = 0;
  while (getrandom(&number, sizeof number, 0) < 0 && errno == EINTR) continue;
  return fmt::format("{:012x}", number & 0xffffffffffff);
}

/// Returns false if it is gone meanwhile. On a file system without locks nothing is locked, and nothing counts as left
/// over.
bool lock(const Descriptor& descriptor) {
  struct stat status {};
  if (flock(descriptor.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
  return fstat(descriptor.get(), &status) == 0 && status.st_nlink > 0;
}

/// `make` returns an open descriptor of something that it created exclusively, or none with its errno.
template <class Make>
Temporary make_beside(const std::string& final_path, std::string_view mark, Make make) {
  constexpr int most_attempts = 100;
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    Temporary made{.path = fmt::format("{}{}{}{}", final_path, mark, kernel_key(), random_key())};
    made.descriptor = Descriptor{make(made.path.c_str())};
    if (!made && errno != EEXIST) return {};
    if (made && lock(made.descriptor)) return made;
  }
  errno = EEXIST;
  return {};
}

/// The parts of a name from make_beside().
struct Name {
  std::string kernel;
  bool is_set_aside;
};

/// Returns nothing if `entry` does not belong to `name`; "" matches any.
std::optional<Name> parse_name(const std::string& entry, const std::string& name) {
  constexpr std::size_t size = making.size() + kernel_digits + random_digits;
  if (entry.size() <= size) return std::nullopt;
  const std::string_view stem = std::string_view{entry}.substr(0, entry.size() - size);
  const std::string_view mark = std::string_view{entry}.substr(stem.size(), making.size());
  const std::string_view digits = std::string_view{entry}.substr(stem.size() + mark.size());
  if ((mark != making && mark != set_aside) || (!name.empty() && stem != name)) return std::nullopt;
  if (digits.find_first_not_of("0123456789abcdef") != std::string_view::npos) return std::nullopt;
  return Name{std::string{digits.substr(0, kernel_digits)}, mark == set_aside};
}

/// Whether no other user can rename another folder of this user to a name in that folder.
bool is_safe_from_others(const fs::path& folder) {
  struct stat status {};
  if (stat(folder.c_str(), &status) != 0 || (status.st_uid != geteuid() && status.st_uid != 0)) return false;
  return (status.st_mode & (S_IWGRP | S_IWOTH)) == 0 || (status.st_mode & S_ISVTX) != 0;
}

/// Removes it if it belongs to this user and no process writes it.
void remove_leftover(const std::string& path) {
  constexpr int flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  Descriptor found{::open(path.c_str(), O_RDWR | flags)};  // NFS locks files only for writers
  if (!found && errno == EISDIR) found = Descriptor{::open(path.c_str(), O_RDONLY | flags)};
  struct stat status {};
  if (!found || fstat(found.get(), &status) != 0 || status.st_uid != geteuid()) return;
  if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) return;
  if (S_ISDIR(status.st_mode) && !is_safe_from_others(fs::path{path}.parent_path()))
    return log_info(fmt::format("'{}' may be left over from a killed run: remove it if so", path));
  if (flock(found.get(), LOCK_EX | LOCK_NB) != 0) return;
  std::error_code error;
  if (fs::remove_all(path, error) > 0 && !error)
    log_info(fmt::format("removed '{}', left over from a killed run", path));
}

int make_folder(const char* path, mode_t mode) {
  return mkdir(path, mode) == 0 ? ::open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
}

}  // namespace

Temporary make_temporary_file(const std::string& final_path, int below) {
  return make_beside(final_path, making, [below](const char* path) {
    return ::openat(below, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  });
}

Temporary make_temporary_folder(const std::string& final_path, mode_t mode) {
  return make_beside(final_path, making, [mode](const char* path) { return make_folder(path, mode); });
}

Temporary make_folder_for_old(const std::string& final_path) {
  return make_beside(final_path, set_aside, [](const char* path) { return make_folder(path, 0700); });
}

void remove_leftovers(const std::string& folder, const std::string& name) noexcept try {
  const std::string here = kernel_key();
  std::vector<std::string> left;
  for (const fs::directory_entry& entry : fs::directory_iterator{folder}) {
    const std::string path = entry.path().string();
    const std::optional<Name> found = parse_name(entry.path().filename().string(), name);
    if (!found) continue;
    if (found->is_set_aside)
      log_warning(
          fmt::format("'{}' was set aside by a killed run that was replacing it: move it back, or remove it", path));
    else if (found->kernel == here)
      left.push_back(path);
    else
      log_info(fmt::format(
          "'{}' belongs to a run on another node or from before the last boot: remove it if that run was killed",
          path));
  }
  for (const std::string& path : left) remove_leftover(path);
} catch (const std::exception&) {
  // The folder cannot be listed: code that writes there reports it.
}

}  // namespace lockstep::core
