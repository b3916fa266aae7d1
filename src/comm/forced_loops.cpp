#include <atomic>
#include <string>

#include "comm/loops.hpp"
#include "core/error.hpp"

namespace lockstep::comm {
namespace {

// Global because there is one processor, and all plans must use the same set.
std::atomic<const Loops*> forced_loops{nullptr};

}  // namespace

const Loops& loops() noexcept {
  const Loops* forced = forced_loops.load(std::memory_order_relaxed);
  return forced != nullptr ? *forced : *core::available_loops<Loops>().back();
}

void force_loops(Isa isa) {
  std::string available;
  for (const Loops* set : core::available_loops<Loops>()) {
    if (set->isa == isa) return forced_loops.store(set, std::memory_order_relaxed);
    available += (available.empty() ? "" : ", ") + std::string(name(set->isa));
  }
  core::fail_usage({.what = "no " + std::string(name(isa)) + " loops on this processor",
                    .where = "instruction set",
                    .expected = "one of " + available,
                    .fix = "leave the choice to Lockstep, which takes the last of these"});
}

}  // namespace lockstep::comm
