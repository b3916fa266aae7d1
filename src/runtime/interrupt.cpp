#include "runtime/interrupt.hpp"

#include <csignal>

namespace lockstep::runtime {
namespace {

// A signal handler can reach nothing but a global.
volatile std::sig_atomic_t pending = 0;

void remember(int signal) { pending = signal; }

}  // namespace

void catch_interrupts() noexcept {
  struct sigaction action {};
  action.sa_handler = remember;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

int pending_interrupt() noexcept { return pending; }

int agree_on_interrupt(const Communicator& world) {
  const int mine = pending;
  if (world.any(mine == SIGINT)) return SIGINT;
  return world.any(mine != 0) ? SIGTERM : 0;
}

}  // namespace lockstep::runtime
