#include "runtime/launcher_output.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <future>
#include <thread>
#include <utility>

#include "runtime/launcher_words.hpp"

namespace lockstep::runtime {
namespace {

using namespace std::chrono_literals;

/// POLLOUT where something can be written without waiting, POLLERR where nobody reads any more; 0: neither.
short state_of(int descriptor, int timeout_ms = 0) noexcept {
  pollfd out{.fd = descriptor, .events = POLLOUT, .revents = 0};
  return poll(&out, 1, timeout_ms) > 0 ? out.revents : short{0};
}

/// State of a pipe, shared with its thread, which may outlive everything else.
struct Passage {
  core::Descriptor from;
  int to = -1;
  bool leaves_out_words = false;
  std::atomic<bool> is_last{false};  ///< nothing more comes but what is there
  std::atomic<bool> has_come{false};
  std::atomic<int> error{0};
};

/// Open MPI 4.1.4's mpirun may crash at its end if its stdout has no reader (in PMIx_Finalize, 8 of 12 times in
/// `reduce_all --nproc 2 | head -n 1`): its message about that is left out. If the job has its readers, it is shown.
class CrashForWantOfReader {
 public:
  /// Returns `text`, of whole lines or the begin of one, without the lines of that message.
  [[nodiscard]] std::string leave_out_of(std::string_view text) {
    std::string rest;
    while (!text.empty()) {
      const std::string_view line = text.substr(0, text.find('\n') == text.npos ? text.npos : text.find('\n') + 1);
      text.remove_prefix(line.size());
      if (!has(line)) rest += line;
    }
    return rest;
  }

 private:
  bool has(std::string_view line) noexcept {
    if (!is_told_ && (line.find("*** Process received signal ***") == line.npos || !has_lost_reader())) return false;
    is_told_ = line.find("*** End of error message ***") == line.npos;
    return true;
  }

  bool is_told_ = false;
};

/// Runs until no more output can come. If nobody reads stderr, output is still taken: mpirun of Open MPI 4 crashes if
/// its stderr blocks.
void pass_on(Passage& passage) {
  constexpr int pause_ms = 200;  // whoever writes a line or a frame around some does so in one go
  LauncherWords words;
  std::array<char, 4096> text{};
  CrashForWantOfReader crash;
  const auto write = [&](std::string_view shown) {
    const std::string left = passage.leaves_out_words ? crash.leave_out_of(shown) : std::string{shown};
    if (passage.error == 0) passage.error = write_all(passage.to, left);
  };
  while (passage.to == STDERR_FILENO || passage.error != EPIPE) {
    const bool is_last = passage.is_last;
    pollfd ready{.fd = passage.from.get(), .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, pause_ms) == 0) {
      write(words.release());
      if (is_last) break;
      continue;
    }
    const ssize_t n = read(passage.from.get(), text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    passage.has_come = true;
    const std::string_view come{text.data(), static_cast<std::size_t>(n)};
    if (passage.leaves_out_words)
      write(words.pass(come));
    else
      write(come);
  }
  write(words.release());
  passage.from = core::Descriptor{};
}

}  // namespace

std::optional<Pipe> make_pipe() noexcept {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  return Pipe{core::Descriptor{ends[0]}, core::Descriptor{ends[1]}};
}

int write_all(int to, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t n = write(to, text.data(), text.size());
    if (n >= 0) {
      text.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno == EAGAIN) {
      state_of(to, 1000);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

bool has_lost_reader() noexcept { return (state_of(STDOUT_FILENO) & POLLERR) != 0; }

bool takes_output() noexcept { return state_of(STDOUT_FILENO) != 0 && state_of(STDERR_FILENO) != 0; }

class LauncherOutput::Relay {
 public:
  /// Returns nothing if no pipe can be created.
  static std::unique_ptr<Relay> make(int place, bool leaves_out_words) {
    std::optional<Pipe> pipe = make_pipe();
    if (!pipe) return nullptr;
    auto relay = std::make_unique<Relay>();
    relay->entry_ = std::move(pipe->to);
    relay->passage_->from = std::move(pipe->from);
    relay->passage_->to = place;
    relay->passage_->leaves_out_words = leaves_out_words;
    return relay;
  }

  void take_place() const noexcept { dup2(entry_.get(), passage_->to); }

  void begin() {
    entry_ = core::Descriptor{};
    std::promise<void> end;
    is_over_ = end.get_future();
    std::thread{[passage = passage_, end = std::move(end)]() mutable {
      pass_on(*passage);
      end.set_value();
    }}.detach();
  }

  void end_soon() noexcept { passage_->is_last = true; }
  [[nodiscard]] bool is_over_within(std::chrono::milliseconds time) const {
    return is_over_.wait_for(time) == std::future_status::ready;
  }
  [[nodiscard]] bool has_come() const noexcept { return passage_->has_come; }
  [[nodiscard]] int error() const noexcept { return passage_->error; }

 private:
  std::shared_ptr<Passage> passage_ = std::make_shared<Passage>();
  core::Descriptor entry_{};
  std::future<void> is_over_{};
};

LauncherOutput::LauncherOutput(bool shows_launcher)
    : out_{Relay::make(STDOUT_FILENO, false)}, err_{shows_launcher ? nullptr : Relay::make(STDERR_FILENO, true)} {}

LauncherOutput::~LauncherOutput() = default;

void LauncherOutput::take_places() const noexcept {
  for (const auto& relay : {out_.get(), err_.get()})
    if (relay != nullptr) relay->take_place();
}

void LauncherOutput::begin() {
  std::signal(SIGPIPE, SIG_IGN);
  for (const auto& relay : {out_.get(), err_.get()})
    if (relay != nullptr) relay->begin();
}

int LauncherOutput::await_end(const sigset_t& awaited) {
  for (const auto& relay : {out_.get(), err_.get()})
    if (relay != nullptr) relay->end_soon();
  while (out_ && !out_->is_over_within(50ms)) {
    constexpr std::timespec now{};
    const int signal = sigtimedwait(&awaited, nullptr, &now);
    if (signal > 0 && signal != SIGCHLD) return signal;
  }
  if (err_) static_cast<void>(err_->is_over_within(1s));
  return 0;
}

bool LauncherOutput::is_silent() const noexcept { return out_ && err_ && !out_->has_come() && !err_->has_come(); }

int LauncherOutput::stdout_error() const noexcept {
  const int error = out_ ? out_->error() : 0;
  return error == EPIPE ? 0 : error;
}

}  // namespace lockstep::runtime
