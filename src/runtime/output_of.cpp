#include "runtime/output_of.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <thread>

#include "core/descriptor.hpp"
#include "core/timer.hpp"

namespace lockstep::runtime {
namespace {

constexpr std::size_t most_bytes = std::size_t{1} << 20;

/// Returns 0 if it could not be started.
pid_t start(const std::vector<std::string>& command, int out) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);  // the terminal's Ctrl-C must not reach it
  pid_t child = 0;
  const int error = posix_spawnp(&child, words[0], &files, &attributes, words.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return error == 0 ? child : 0;
}

/// Reads until the end; returns false if the end does not come in time, or the output is too long.
bool read_all(int from, core::Seconds limit, std::string& text) {
  const core::Stopwatch watch;
  std::array<char, 4096> part{};
  while (text.size() <= most_bytes) {
    const double left = limit.value - watch.elapsed().value;
    if (left <= 0) return false;
    pollfd wanted{.fd = from, .events = POLLIN, .revents = 0};
    const int n_ready = poll(&wanted, 1, static_cast<int>(std::min(left, 1000.0) * 1e3) + 1);
    if (n_ready < 0 && errno != EINTR) return false;
    if (n_ready <= 0) continue;
    const ssize_t n = read(from, part.data(), part.size());
    if (n == 0) return true;
    if (n < 0 && errno != EINTR) return false;
    if (n > 0) text.append(part.data(), static_cast<std::size_t>(n));
  }
  return false;
}

}  // namespace

std::optional<std::string> output_of(const std::vector<std::string>& command, core::Seconds limit) {
  const core::Stopwatch watch;
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  const core::Descriptor from{ends[0]};
  core::Descriptor to{ends[1]};
  const pid_t child = start(command, to.get());
  to = {};
  if (child == 0) return std::nullopt;
  std::string text;
  bool is_in_time = read_all(from.get(), limit, text);
  int status = 0;
  while (is_in_time && waitpid(child, &status, WNOHANG) == 0) {  // it may have closed its stdout and still run
    is_in_time = watch.elapsed() <= limit;
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  if (!is_in_time) {
    kill(-child, SIGKILL);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  }
  if (!is_in_time || !WIFEXITED(status) || WEXITSTATUS(status) != 0) return std::nullopt;
  return text;
}

}  // namespace lockstep::runtime
