#include "reduce_all/output_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "core/error.hpp"
#include "core/result_path.hpp"
#include "core/shortage.hpp"
#include "core/temporary.hpp"

namespace lockstep::reduce_all {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& path, std::string_view flag, const std::string& why) {
  const std::string failure = fmt::format("cannot write '{}'", path);
  core::refuse_shortage(failure, flag, core::shortage_in(why));
  core::fail_usage({.what = fmt::format("{}: {}", failure, why),
                    .where = std::string{flag},
                    .expected = "a file in an existing folder you may write to",
                    .fix = "create the folder or name another file"});
}

}  // namespace

OutputFile::OutputFile(const std::string& path, std::string_view flag)
    : path_{core::behind_links(path)} {  // so that links survive the rename
  core::refuse_in_shard_set(path, flag);
  core::refuse_link_of_others(path, flag);
  core::refuse_irreplaceable(path_, flag);
  std::error_code none;
  const fs::file_status status = fs::status(path, none);
  if (status.type() == fs::file_type::none) refuse(path, flag, none.message());
  if (fs::is_directory(status)) refuse(path, flag, "it is a folder");
  if (fs::exists(status) && !fs::is_regular_file(status)) refuse(path, flag, "it is no regular file");
  if (fs::exists(status) && ::access(path_.c_str(), W_OK) != 0) refuse(path, flag, core::system_reason(errno));
  const fs::path file = path_;
  core::remove_leftovers(file.has_parent_path() ? file.parent_path().string() : ".", file.filename().string());
  const core::Temporary trial = core::make_temporary_file(path_);
  if (!trial) refuse(path, flag, core::system_reason(errno));
  ::unlink(trial.path.c_str());  // a run that ends before its first row leaves nothing behind
}

void OutputFile::replace(std::string_view content) {
  const core::Temporary file = core::make_temporary_file(path_);
  while (file && !content.empty()) {
    const ssize_t n = ::write(file.descriptor.get(), content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) break;
    content.remove_prefix(static_cast<std::size_t>(n));
  }
  if (!file || !content.empty() || ::rename(file.path.c_str(), path_.c_str()) != 0) {
    const std::string why = core::system_reason(errno);
    if (file) ::unlink(file.path.c_str());
    throw core::Error{
        core::ExitCode::system,
        {.what = fmt::format("cannot write '{}': {}", path_, why),
         .where = "",
         .expected = "",
         .fix = "the file, if it was written before, has the rows up to then; free space, then measure again"},
        core::SourceLocation::current()};
  }
}

}  // namespace lockstep::reduce_all
