#include "training/interrupt.hpp"

#include <algorithm>
#include <csignal>

namespace lockstep::training {
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

int agree_on_interrupt(const runtime::Communicator& world) {
  const int mine = pending;
  const auto all = runtime::gather_values(world, std::span{&mine, 1});
  const int highest = all.empty() ? 0 : *std::max_element(all.begin(), all.end());
  return runtime::broadcast_value(world, highest);
}

}  // namespace lockstep::training
