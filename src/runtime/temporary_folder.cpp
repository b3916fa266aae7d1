#include "runtime/temporary_folder.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "core/error.hpp"

namespace lockstep::runtime {

void require_temporary_folder() {
  const char* const folder = std::getenv("TMPDIR");
  if (folder == nullptr || *folder == '\0') return;
  std::error_code error;
  std::filesystem::create_directories(folder, error);  // as the libraries do
  if (!error && access(folder, W_OK | X_OK) != 0) error = {errno, std::generic_category()};
  if (!error) return;
  core::fail_usage({.what = fmt::format("cannot make temporary files in '{}': {}", folder, error.message()),
                    .where = "TMPDIR",
                    .expected = "a folder that MPI may write to",
                    .fix = "unset TMPDIR, or name such a folder, for example /tmp"});
}

}  // namespace lockstep::runtime
