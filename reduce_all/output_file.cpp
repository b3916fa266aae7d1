#include "reduce_all/output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "core/error.hpp"
#include "core/handle.hpp"

namespace lockstep::reduce_all {
namespace {

namespace fs = std::filesystem;

struct DescriptorPolicy {
  using Raw = int;
  static Raw null() noexcept { return -1; }
  static void destroy(Raw raw) noexcept { ::close(raw); }
};
using Descriptor = core::UniqueHandle<DescriptorPolicy>;

Descriptor open_for_writing(const std::string& path) {
  return Descriptor{::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)};
}

// The file behind a symbolic link, so that the link survives the rename.
std::string resolve(const std::string& path) {
  std::error_code ignored;
  const fs::path resolved = fs::weakly_canonical(path, ignored);
  return resolved.empty() ? path : resolved.string();
}

[[noreturn]] void refuse(const std::string& path, std::string_view flag, const std::string& why) {
  core::fail_usage({.what = fmt::format("cannot write '{}': {}", path, why),
                    .where = std::string{flag},
                    .expected = "a file in an existing folder you may write to",
                    .fix = "create the folder or name another file"});
}

}  // namespace

OutputFile::OutputFile(const std::string& path, std::string_view flag)
    : path_{resolve(path)}, temporary_{fmt::format("{}.tmp.{}", path_, ::getpid())} {
  std::error_code none;
  const fs::file_status status = fs::status(path_, none);
  if (fs::is_directory(status)) refuse(path, flag, "it is a folder");
  if (fs::exists(status) && !fs::is_regular_file(status)) refuse(path, flag, "it is no regular file");
  if (fs::exists(status) && ::access(path_.c_str(), W_OK) != 0) refuse(path, flag, core::system_reason(errno));
  if (!open_for_writing(temporary_)) refuse(path, flag, core::system_reason(errno));
  ::unlink(temporary_.c_str());  // it was a trial; a run that ends before its first row leaves nothing behind
}

void OutputFile::replace(std::string_view content) {
  const Descriptor file = open_for_writing(temporary_);
  while (file && !content.empty()) {
    const ssize_t n = ::write(file.get(), content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) break;
    content.remove_prefix(static_cast<std::size_t>(n));
  }
  if (!file || !content.empty() || ::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const std::string why = core::system_reason(errno);
    ::unlink(temporary_.c_str());
    core::fail_system(fmt::format("cannot write '{}': {}", path_, why));
  }
}

}  // namespace lockstep::reduce_all
