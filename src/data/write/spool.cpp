#include "data/write/spool.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/shortage.hpp"

namespace lockstep::data {
namespace {

constexpr std::size_t buffer_bytes = std::size_t{1} << 17;

[[noreturn]] void fail(const char* operation, const std::string& folder, int error) {
  const std::string failure = fmt::format("cannot {} a temporary file", operation);
  if (error != ENOSPC && error != EDQUOT) core::refuse_shortage(failure, folder, error);  // of room, the fix is known
  throw core::Error{core::ExitCode::system,
                    {.what = fmt::format("{}: {}", failure, core::system_reason(error)),
                     .where = folder,
                     .fix = folder == temporary_folder() ? "set TMPDIR to a folder with room for the data, uncompressed"
                                                         : "make room there, or name a folder on another file system"}};
}

}  // namespace

std::string temporary_folder() {
  const char* folder = std::getenv("TMPDIR");
  return folder != nullptr && *folder != '\0' ? folder : "/tmp";
}

std::optional<Spool> Spool::open(const SpoolPlace& place) {
  const std::string path = fmt::format("/proc/{}/fd/{}", place.process, place.descriptor);
  core::Descriptor descriptor{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat status {};
  if (!descriptor || ::fstat(descriptor.get(), &status) != 0) return std::nullopt;
  if (status.st_dev != place.device || status.st_ino != place.inode) return std::nullopt;
  return Spool{temporary_folder(), std::move(descriptor), place.size};
}

SpoolPlace Spool::place() const {
  struct stat status {};
  if (::fstat(descriptor_.get(), &status) != 0) fail("look at", folder_, errno);
  return {::getpid(), descriptor_.get(), status.st_dev, status.st_ino, size_};
}

void Spool::read_at(std::uint64_t offset, std::span<std::byte> data) const {
  core::require(offset <= size_ && data.size() <= size_ - offset, "a spool is read within its size");
  while (!data.empty()) {
    const ssize_t n = ::pread(descriptor_.get(), data.data(), data.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail("read", folder_, n < 0 ? errno : EIO);
    offset += static_cast<std::uint64_t>(n);
    data = data.subspan(static_cast<std::size_t>(n));
  }
}

SpoolWriter::SpoolWriter(std::string folder) : folder_{std::move(folder)} {
  std::string path = folder_ + "/lockstep-" + std::string(6, 'X');  // the template that mkostemp(3) fills in
  descriptor_ = core::Descriptor{::mkostemp(path.data(), O_CLOEXEC)};
  if (!descriptor_) fail("create", folder_, errno);
  ::unlink(path.c_str());
  pending_.reserve(buffer_bytes);
}

void SpoolWriter::append(std::span<const std::byte> data) {
  while (!data.empty()) {
    const std::size_t n = std::min(data.size(), buffer_bytes - pending_.size());
    pending_.insert(pending_.end(), data.begin(), data.begin() + static_cast<std::ptrdiff_t>(n));
    data = data.subspan(n);
    if (pending_.size() == buffer_bytes) flush();
  }
}

Spool SpoolWriter::finish() && {
  flush();
  pending_ = {};
  return Spool{std::move(folder_), std::move(descriptor_), flushed_};
}

void SpoolWriter::flush() {
  std::span<const std::byte> left{pending_};
  while (!left.empty()) {
    const ssize_t n = ::write(descriptor_.get(), left.data(), left.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("write", folder_, errno);
    left = left.subspan(static_cast<std::size_t>(n));
  }
  flushed_ += pending_.size();
  pending_.clear();
}

}  // namespace lockstep::data
