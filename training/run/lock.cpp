#include "training/run/lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "runtime/session.hpp"

namespace lockstep::training {
namespace {

core::Descriptor open_lock(RunLock& lock) {
  constexpr int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;  // NFS locks files only for writers
  core::Descriptor file{::open(lock.path.c_str(), flags | O_CREAT | O_EXCL, 0666)};
  lock.is_new = static_cast<bool>(file);
  lock.error = lock.is_new ? 0 : errno;
  if (lock.error != EEXIST) return file;
  file = core::Descriptor{::open(lock.path.c_str(), flags)};
  lock.error = file ? 0 : errno == ENOENT ? ESTALE : errno;  // removed in the meantime
  struct stat status {};
  if (file && (fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))) lock.error = EEXIST;
  return file;
}

std::string read_holder(const RunLock& lock) {
  std::array<char, 100> text{};
  const ssize_t n = pread(lock.file.get(), text.data(), text.size(), 0);
  return {text.data(), std::find(text.data(), text.data() + std::max<ssize_t>(n, 0), '\n')};
}

}  // namespace

// Only for messages: if it cannot be written, they lack it.
void sign(const RunLock& lock) {
  const std::string text = fmt::format("pid {} on {}\n", getpid(), runtime::host_name());
  if (ftruncate(lock.file.get(), 0) == 0) static_cast<void>(!pwrite(lock.file.get(), text.data(), text.size(), 0));
}

bool is_in_place(const RunLock& lock) noexcept {
  struct stat opened {
  }, named{};
  return fstat(lock.file.get(), &opened) == 0 && lstat(lock.path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

bool is_of_another(const RunLock& lock, int folder) noexcept {
  struct stat opened {
  }, named{};
  // No run takes a lock that is a link.
  if (fstatat(folder, run_lock_name, &named, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(named.st_mode)) return false;
  return fstat(lock.file.get(), &opened) != 0 || opened.st_dev != named.st_dev || opened.st_ino != named.st_ino;
}

RunLock take_run_lock(const std::string& folder, const std::function<void()>& opened) {
  RunLock lock{.path = fmt::format("{}/{}", folder, run_lock_name)};
  for (int n_left = 100; n_left > 0; --n_left) {
    lock.file = open_lock(lock);
    if (opened) opened();
    const bool is_locked = lock.error == 0 && flock(lock.file.get(), LOCK_EX | LOCK_NB) == 0;
    if (lock.error == 0 && !is_locked) {
      lock.has_locks = errno == EWOULDBLOCK || errno == ESTALE;
      lock.error = lock.has_locks ? errno : 0;
    }
    if (lock.error == EWOULDBLOCK) lock.holder = read_holder(lock);
    if (lock.error == 0 && !is_in_place(lock)) lock.error = ESTALE;
    if (lock.error == ESTALE) continue;
    if (lock.error == 0) sign(lock);
    break;
  }
  return lock;
}

void remove_run_lock(RunLock& lock) noexcept {
  if (lock.file && lock.error == 0 && lock.is_new && is_in_place(lock)) ::unlink(lock.path.c_str());
  lock.file = {};
}

}  // namespace lockstep::training
