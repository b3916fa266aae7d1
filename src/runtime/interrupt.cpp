#include "runtime/interrupt.hpp"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>

#include "runtime/asked.hpp"

namespace lockstep::runtime {
namespace {

// A signal handler can reach nothing but globals.
volatile std::sig_atomic_t pending = 0;
std::atomic<int> n_holds{0};  // of repeats
std::atomic<const core::Clock*> signal_clock{nullptr};
std::atomic<double> pending_since_s{0};
std::atomic<const char*> announcement{nullptr};
static_assert(std::atomic<double>::is_always_lock_free && std::atomic<const char*>::is_always_lock_free &&
              std::atomic<int>::is_always_lock_free);

/// Launchers, guards and terminals may all send on what was sent once: within a second it is the same signal.
constexpr double same_signal_s = 1;

void remember(int signal) {
  const int error = errno;
  const double now_s = signal_clock.load()->now().value;
  if (pending == 0) {
    const int meant = signal == SIGUSR1 ? told_signal() : signal;
    pending_since_s = now_s;  // first, as another thread may get the same signal in between
    pending = meant == SIGINT ? SIGINT : SIGTERM;
    // A launcher that makes an end of a failed job sends SIGTERM, and does not wait for anything.
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
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGUSR1, &action, nullptr);
  sigaction(SIGUSR2, &action, nullptr);
  struct sigaction hangup {};
  sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);  // nohup ignores it
}

NoInterrupts::NoInterrupts() noexcept {
  sigset_t interrupts;
  sigemptyset(&interrupts);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGHUP}) sigaddset(&interrupts, signal);
  pthread_sigmask(SIG_BLOCK, &interrupts, &before_);
}

NoInterrupts::~NoInterrupts() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

HoldRepeats::HoldRepeats() noexcept { ++n_holds; }

HoldRepeats::~HoldRepeats() { --n_holds; }

void announce_interrupt(const char* text) noexcept { announcement = text; }

int pending_interrupt() noexcept { return pending; }

int agree_on_interrupt(const Communicator& world) {
  const int mine = pending;
  const std::uint8_t highest = world.highest(mine == SIGINT ? 2 : mine != 0 ? 1 : 0);
  return highest == 2 ? SIGINT : highest == 1 ? SIGTERM : 0;
}

}  // namespace lockstep::runtime
