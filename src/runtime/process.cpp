#include "runtime/process.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

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

std::vector<Descendant> find_descendants(const std::vector<pid_t>& but) {
  namespace fs = std::filesystem;
  struct Seen {
    pid_t process, parent;
    char state;
  };
  std::vector<Seen> all;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator{"/proc", error}) {
    const pid_t process = std::atoi(entry.path().filename().c_str());
    const auto status = process > 0 ? read_process(process) : std::nullopt;
    if (status && status->state != 'Z') all.push_back({process, status->parent, status->state});
  }
  const fs::path me = fs::read_symlink("/proc/self/exe", error);
  std::vector<Descendant> found;
  std::vector<pid_t> parents{getpid()};
  while (!parents.empty()) {
    const pid_t parent = parents.back();
    parents.pop_back();
    for (const Seen& child : all) {
      if (child.parent != parent || std::ranges::find(but, child.process) != but.end()) continue;
      parents.push_back(child.process);
      const bool is_ours = fs::read_symlink(fmt::format("/proc/{}/exe", child.process), error) == me;
      found.push_back({child.process, is_ours, child.state == 'T'});
    }
  }
  return found;
}

}  // namespace lockstep::runtime
