#include "comm/kernels.hpp"

#include <atomic>
#include <string>

#include "core/error.hpp"

namespace lockstep::comm {
namespace {

// Global because there is one processor, and all plans must use the same set.
std::atomic<const Kernels*> forced_kernels{nullptr};

}  // namespace

const Kernels& kernels() noexcept {
  const Kernels* forced = forced_kernels.load(std::memory_order_relaxed);
  return forced != nullptr ? *forced : *available_kernels().back();
}

void force_kernels(Isa isa) {
  std::string available;
  for (const Kernels* set : available_kernels()) {
    if (set->isa == isa) return forced_kernels.store(set, std::memory_order_relaxed);
    available += (available.empty() ? "" : ", ") + std::string(name(set->isa));
  }
  core::fail_usage({.what = "no " + std::string(name(isa)) + " kernels on this processor",
                    .where = "instruction set",
                    .expected = "one of " + available,
                    .fix = "leave the choice to Lockstep, which takes the last of these"});
}

}  // namespace lockstep::comm
