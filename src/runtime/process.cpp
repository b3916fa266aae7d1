#include "runtime/process.hpp"

#include <fmt/format.h>

#include <fstream>
#include <sstream>
#include <string>

namespace lockstep::runtime {

std::optional<ProcessStatus> read_process(pid_t pid) {
  std::ifstream file{fmt::format("/proc/{}/stat", pid)};
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');  // the name before it may contain anything
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields{line.substr(name_end + 1)};
  ProcessStatus status;
  fields >> status.state >> status.parent;
  std::string skipped;
  for (int field = 5; field < 22; ++field) fields >> skipped;  // proc(5): starttime is field 22
  fields >> status.start_time;
  if (!fields) return std::nullopt;
  return status;
}

bool was_started_with(pid_t pid, std::string_view variable) {
  std::ifstream file{fmt::format("/proc/{}/environ", pid)};
  for (std::string entry; std::getline(file, entry, '\0');)
    if (std::string_view{entry}.substr(0, entry.find('=')) == variable) return true;
  return false;
}

}  // namespace lockstep::runtime
