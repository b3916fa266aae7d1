#include "core/shortage.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "core/error.hpp"

namespace lockstep::core {
namespace {

std::string fix_for(int error) {
  rlimit limit{};
  if (error == EMFILE && getrlimit(RLIMIT_NOFILE, &limit) == 0)
    return fmt::format("raise the limit of open files per process, now {}: ulimit -n", limit.rlim_cur);
  if (error == EAGAIN) return "raise the limit of processes of this user or control group: ulimit -u";
  if (error == ENOSPC || error == EDQUOT) return "make room there (inodes too: df -i), or name another place";
  if (error == EFBIG) return "raise the limit of file sizes of a process: ulimit -f unlimited";
  if (error == ENFILE) return "end other programs on this node, or raise its limit of open files: fs.file-max";
  return "start fewer ranks on this node, or raise their memory limit: ulimit -v, the job's request";
}

}  // namespace

void refuse_shortage(const std::string& what, std::string_view where, int error) {
  constexpr std::array shortages{EMFILE, ENFILE, ENOMEM, EAGAIN, ENOSPC, EDQUOT, EFBIG};
  if (std::ranges::find(shortages, error) == shortages.end()) return;
  throw Error{
      ExitCode::system,
      {.what = fmt::format("{}: {}", what, system_reason(error)), .where = std::string{where}, .fix = fix_for(error)}};
}

int shortage_in(std::string_view reason) {
  for (const int error : std::array{EMFILE, ENFILE, ENOMEM, ENOSPC, EDQUOT, EFBIG})
    if (reason.find(system_reason(error)) != std::string_view::npos) return error;
  return reason.find("memory allocation failed") != std::string_view::npos ? ENOMEM : 0;
}

std::string fix_of_limit(std::string_view reason, std::string_view otherwise) {
  const int error = shortage_in(reason);
  return error == 0 || error == ENOSPC || error == EDQUOT ? std::string{otherwise} : fix_for(error);
}

}  // namespace lockstep::core
