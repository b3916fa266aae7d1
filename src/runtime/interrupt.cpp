#include "runtime/interrupt.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "runtime/asked.hpp"

namespace lockstep::runtime {
namespace {

// A signal handler can reach only globals.
volatile std::sig_atomic_t pending = 0;
std::atomic<int> n_holds{0};  // of repeats
std::atomic<const core::Clock*> signal_clock{nullptr};
std::atomic<double> pending_since_s{0};
std::atomic<const char*> announcement{nullptr};
static_assert(std::atomic<double>::is_always_lock_free && std::atomic<const char*>::is_always_lock_free &&
              std::atomic<int>::is_always_lock_free);

/// Launchers, guards and terminals may all pass on the same signal, so repeats within a second count as one.
constexpr double same_signal_s = 1;

/// Weakest first: SIGUSR1 may stand for another signal that a rank elsewhere does not know, and launchers turn others
/// into SIGTERM. `may_be_ignored`: a signal that is ignored at the start stays ignored, as with nohup or a background
/// command of a shell. Batch systems and --nproc send the others.
struct Asking {
  int signal;
  std::string_view name;
  bool may_be_ignored;
};
constexpr std::array<Asking, 5> asking{{{SIGUSR1, "SIGUSR1", false},
                                        {SIGTERM, "SIGTERM", false},
                                        {SIGUSR2, "SIGUSR2", false},
                                        {SIGHUP, "SIGHUP", true},
                                        {SIGINT, "SIGINT", true}}};

void remember(int signal) {
  const int error = errno;
  const double now_s = signal_clock.load()->now().value;
  if (pending == 0) {
    const int told = signal == SIGUSR1 || signal == SIGTERM ? told_signal() : 0;
    pending_since_s = now_s;  // first, because another thread may get the same signal in between
    pending = told != 0 ? told : signal;
    // A launcher that ends a failed job sends SIGTERM and does not wait.
    const char* const text = announcement;
    if (text != nullptr && (signal == SIGINT || signal == SIGUSR1))
      static_cast<void>(!write(STDERR_FILENO, text, std::strlen(text)));
  } else if (signal != SIGUSR1 && signal != SIGUSR2 && !(n_holds != 0 && signal != SIGINT) &&
             now_s - pending_since_s > same_signal_s) {
    std::signal(signal, SIG_DFL);
    raise(signal);
  }
  errno = error;
}

/// Gives the calling thread a stack for handlers, unless it has one. The largest frame of x86, with AMX, is 11 KiB.
void use_signal_stack() noexcept {
  alignas(64) static std::array<std::byte, 65536> memory;
  stack_t stack{};
  if (sigaltstack(nullptr, &stack) != 0 || (stack.ss_flags & SS_DISABLE) == 0) return;
  stack = {.ss_sp = memory.data(), .ss_flags = 0, .ss_size = memory.size()};
  sigaltstack(&stack, nullptr);
}

}  // namespace

void catch_interrupts(const core::Clock& clock) noexcept {
  signal_clock = &clock;
  use_signal_stack();
  struct sigaction action {};
  action.sa_handler = remember;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  const sigset_t caught = asking_signals();
  for (const Asking& one : asking)
    if (sigismember(&caught, one.signal) == 1) sigaction(one.signal, &action, nullptr);
}

sigset_t asking_signals() noexcept {
  sigset_t set;
  sigemptyset(&set);
  for (const Asking& one : asking) {
    struct sigaction action {};
    sigaction(one.signal, nullptr, &action);
    if (!one.may_be_ignored || action.sa_handler != SIG_IGN) sigaddset(&set, one.signal);
  }
  return set;
}

std::string_view signal_name(int signal) noexcept {
  const auto found = std::ranges::find(asking, signal, &Asking::signal);
  return found != asking.end() ? found->name : "unknown";
}

std::string describe_signal(int signal) { return fmt::format("signal {} ({})", signal, signal_name(signal)); }

NoInterrupts::NoInterrupts() noexcept {
  sigset_t interrupts;
  sigemptyset(&interrupts);
  for (const Asking& one : asking) sigaddset(&interrupts, one.signal);
  pthread_sigmask(SIG_BLOCK, &interrupts, &before_);
}

NoInterrupts::~NoInterrupts() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

HoldRepeats::HoldRepeats() noexcept { ++n_holds; }

HoldRepeats::~HoldRepeats() { --n_holds; }

void announce_interrupt(const char* text) noexcept { announcement = text; }

int pending_interrupt() noexcept { return pending; }

int agree_on_interrupt(const Communicator& world, int mine) {
  const auto row = std::ranges::find(asking, mine, &Asking::signal);
  const auto weight = row != asking.end() ? static_cast<std::uint8_t>(row - asking.begin() + 1) : std::uint8_t{0};
  const std::uint8_t strongest = world.highest(weight);
  return strongest == 0 ? 0 : asking[strongest - std::size_t{1}].signal;
}

}  // namespace lockstep::runtime
