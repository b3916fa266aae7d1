// Tools for tests of files: a folder of their own, a full disk, too few descriptors, a user without permissions.
// Invariant: each undoes its effect when it ends.
// Used by the tests of io/, and by those of whole commands.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace lockstep::io {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "lockstep-io-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  [[nodiscard]] std::size_t n_entries() const {
    using Iterator = std::filesystem::directory_iterator;
    return static_cast<std::size_t>(std::distance(Iterator{path_}, Iterator{}));
  }

 private:
  std::string path_;
};

/// Lets no file grow beyond `bytes`: writing more fails as on a full disk.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : handler_{std::signal(SIGXFSZ, SIG_IGN)} {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

/// Lets only `n` more files be opened.
class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t n) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const int lowest = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::close(lowest);
    const rlimit limit{static_cast<rlim_t>(lowest) + n, before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  ~FewDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit before_{};
};

/// A user without permissions in the folder. (Root may do everything, so root becomes another user meanwhile.)
class LockedOut {
 public:
  explicit LockedOut(const TemporaryFolder& folder) : path_{folder.path()}, before_{geteuid()} {
    if (chmod(path_.c_str(), 0) != 0 || (before_ == 0 && seteuid(65534) != 0)) std::abort();
  }
  ~LockedOut() {
    if (seteuid(before_) != 0 || chmod(path_.c_str(), 0700) != 0) std::abort();
  }
  LockedOut(const LockedOut&) = delete;
  LockedOut& operator=(const LockedOut&) = delete;

 private:
  std::string path_;
  uid_t before_;
};

/// Writes a new file, because truncating and rewriting one waits for the disk.
inline void put(const std::string& path, const std::string& text) {
  std::filesystem::remove(path);
  std::ofstream{path, std::ios::binary} << text;
}

inline std::string get(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

inline std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span{text}); }

/// Bytes with `n_values` different values; the same for the same arguments. (Knuth's MMIX generator: fast in debug
/// builds.)
inline std::vector<std::byte> random_bytes(std::size_t n, std::uint64_t n_values = 5) {
  std::uint64_t state = n;
  std::vector<std::byte> bytes(n);
  for (std::byte& byte : bytes) {
    state = state * 6364136223846793005 + 1442695040888963407;
    byte = static_cast<std::byte>((state >> 33) % n_values);
  }
  return bytes;
}

/// Expects `f` to throw a core::Error with this code whose message contains all of `words`.
template <class F>
void expect_error(F&& f, core::ExitCode code, const std::vector<std::string>& words) {
  try {
    f();
    FAIL() << "no error";
  } catch (const core::Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    for (const std::string& word : words)
      EXPECT_NE(std::string{error.what()}.find(word), std::string::npos) << "no '" << word << "' in: " << error.what();
  }
}

}  // namespace lockstep::io
