#include "runtime/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

namespace lockstep::runtime {
namespace {

namespace fs = std::filesystem;

struct Living {
  pid_t process, parent;
  char state;
};

/// All processes of this node that have not ended.
std::vector<Living> read_living() {
  std::vector<Living> all;
  std::error_code error;
  for (auto entry = fs::directory_iterator{"/proc", error}; !error && entry != end(entry); entry.increment(error)) {
    const pid_t process = std::atoi(entry->path().filename().c_str());
    const auto status = process > 0 ? read_process(process) : std::nullopt;
    if (status && status->state != 'Z' && status->state != 'X') all.push_back({process, status->parent, status->state});
  }
  return all;
}

}  // namespace

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

std::string name_of_process(pid_t pid) {
  std::ifstream file{fmt::format("/proc/{}/comm", pid)};
  std::string name;
  std::getline(file, name);
  return name;
}

bool is_of_this_user(pid_t pid) {
  struct stat status {};
  return stat(fmt::format("/proc/{}", pid).c_str(), &status) == 0 && status.st_uid == geteuid();
}

bool has_living_child(pid_t pid) {
  return std::ranges::any_of(read_living(), [pid](const Living& one) { return one.parent == pid; });
}

core::Descriptor open_output_of(pid_t pid, int place) {
  const std::string path = fmt::format("/proc/{}/fd/{}", pid, place);
  return core::Descriptor{::open(path.c_str(), O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)};
}

bool has_unread_output(pid_t pid) {
  return std::ranges::any_of(std::array{STDOUT_FILENO, STDERR_FILENO}, [pid](int place) {
    const core::Descriptor out = open_output_of(pid, place);
    pollfd wanted{.fd = out.get(), .events = POLLOUT, .revents = 0};
    return out && poll(&wanted, 1, 0) == 0;
  });
}

std::vector<Descendant> find_descendants(const std::vector<pid_t>& but) {
  const std::vector<Living> all = read_living();
  std::error_code error;
  const fs::path me = fs::read_symlink("/proc/self/exe", error);
  std::vector<Descendant> found;
  std::vector<pid_t> parents{getpid()};
  while (!parents.empty()) {
    const pid_t parent = parents.back();
    parents.pop_back();
    for (const Living& child : all) {
      if (child.parent != parent || std::ranges::find(but, child.process) != but.end()) continue;
      parents.push_back(child.process);
      const bool is_ours = fs::read_symlink(fmt::format("/proc/{}/exe", child.process), error) == me;
      found.push_back({child.process, is_ours, child.state == 'T'});
    }
  }
  return found;
}

}  // namespace lockstep::runtime
