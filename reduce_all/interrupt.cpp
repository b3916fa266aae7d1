#include "reduce_all/interrupt.hpp"

#include <csignal>

namespace lockstep::reduce_all {
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

}  // namespace lockstep::reduce_all
