#include "core/print.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <string>

#include "core/printable.hpp"
#include "core/shortage.hpp"
#include "core/timer.hpp"

namespace lockstep::core {

void keep_standard_places() noexcept {
  for (const int place : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(place, F_GETFD) < 0) open("/dev/null", place == STDERR_FILENO ? O_WRONLY : O_RDONLY);
}

void print(std::string_view text) {
  const std::string shown = printable(text, "\n\t");
  if (std::fwrite(shown.data(), 1, shown.size(), stdout) == shown.size() && std::fflush(stdout) == 0) return;
  throw lost_stdout(errno);
}

Error lost_stdout(int error, SourceLocation location) {
  const std::string reason = system_reason(error);
  return {ExitCode::system,
          {.what = fmt::format("cannot write to stdout: {}", reason),
           .where = "",
           .expected = "",
           .fix = fix_of_limit(reason, "free space where stdout goes, or redirect it")},
          location};
}

void write_in_time(int descriptor, std::string_view text) noexcept {
  constexpr double patience_s = 1;
  constexpr int look_ms = 100;
  // A ready descriptor has room for this much; signals often come just when a job ends.
  const std::size_t most = isatty(descriptor) != 0 ? 256 : PIPE_BUF;
  for (const Stopwatch watch; !text.empty() && watch.elapsed().value < patience_s;) {
    pollfd ready{.fd = descriptor, .events = POLLOUT, .revents = 0};
    if (poll(&ready, 1, look_ms) <= 0) continue;
    const ssize_t n = write(descriptor, text.data(), std::min(text.size(), most));
    if (n < 0 && errno != EINTR) return;
    if (n > 0) text.remove_prefix(static_cast<std::size_t>(n));
  }
}

void Printer::print(std::string_view text) {
  if (!complaint_) complaint_ = complaint_of([text] { core::print(text); });
}

}  // namespace lockstep::core
