#include "io/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/error.hpp"
#include "core/shortage.hpp"
#include "io/retry.hpp"

namespace lockstep::io {
namespace {

[[noreturn]] void fail_to_open(const std::string& path, const std::string& reason, std::string fix) {
  core::fail_usage({.what = fmt::format("cannot read '{}': {}", path, reason),
                    .expected = "a regular file that can be read",
                    .fix = std::move(fix)});
}

std::string fix_for(int error) {
  if (error == EACCES || error == EPERM) return "ask for read permission on the file and all folders above it";
  if (error == ENOENT || error == ENOTDIR) return "check the spelling, and that its file system is mounted";
  return {};
}

struct stat status_of(int descriptor, const std::string& path) {
  struct stat status {};
  if (with_retries([&] { return fstat(descriptor, &status); }) < 0)
    core::fail_system(fmt::format("cannot get the size of '{}': {}", path, core::system_reason(errno)));
  return status;
}

}  // namespace

// O_NONBLOCK: a named pipe must be refused, not waited for.
File::File(const std::string& path)
    : File{path,
           core::Descriptor{with_retries([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); })}} {}

File::File(std::string path, core::Descriptor opened) : path_{std::move(path)}, descriptor_{std::move(opened)} {
  if (!descriptor_) core::refuse_shortage(fmt::format("cannot open '{}'", path_), "", errno);
  if (!descriptor_) fail_to_open(path_, core::system_reason(errno), fix_for(errno));
  const auto mode = status_of(descriptor_.get(), path_).st_mode;
  if (S_ISDIR(mode)) fail_to_open(path_, "it is a folder", "give a file");
  if (!S_ISREG(mode)) fail_to_open(path_, "it is not a regular file", "copy its content to a file first");
}

core::Bytes File::size() const { return {static_cast<std::uint64_t>(status_of(descriptor_.get(), path_).st_size)}; }

void File::read_at(std::uint64_t offset, std::span<std::byte> data) const {
  std::size_t n_read = 0;
  while (n_read < data.size()) {
    const auto rest = data.subspan(n_read);
    const auto n = with_retries(
        [&] { return pread(descriptor_.get(), rest.data(), rest.size(), static_cast<off_t>(offset + n_read)); });
    if (n < 0) {
      core::fail_system(fmt::format("cannot read bytes [{}, {}) of '{}': {}", offset, offset + data.size(), path_,
                                    core::system_reason(errno)));
    }
    if (n == 0) {
      core::fail_usage({.what = fmt::format("'{}' has {} bytes, but bytes [{}, {}) are needed", path_, size().value,
                                            offset, offset + data.size()),
                        .expected = "a complete file",
                        .fix = "copy or make the file again"});
    }
    n_read += static_cast<std::size_t>(n);
  }
}

void File::drop_cache() const {
  // Pages that are not on the disk yet would stay. Both calls are advice, which a file system may ignore.
  fdatasync(descriptor_.get());
  posix_fadvise(descriptor_.get(), 0, 0, POSIX_FADV_DONTNEED);
}

std::string read_text(const std::string& path, core::Bytes most) { return read_text(File{path}, most); }

std::string read_text(const File& file, core::Bytes most) {
  const core::Bytes size = file.size();
  if (size > most) {
    core::fail_usage({.what = fmt::format("'{}' has {} bytes", file.path(), size.value),
                      .expected = fmt::format("at most {} bytes", most.value)});
  }
  std::string text(size.value, '\0');
  file.read_at(0, std::as_writable_bytes(std::span{text}));
  return text;
}

}  // namespace lockstep::io
