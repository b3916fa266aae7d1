// Facts that nodes learn about one another: clocks, names, and whether they see the same folder.
// Invariant: every rank gets an answer within the time limits; collectives are those of runtime::Communicator.
// Used by collect.cpp.
#pragma once

#include <string>
#include <vector>

#include "core/clock.hpp"
#include "runtime/communicator.hpp"
#include "training/doctor/facts.hpp"

namespace lockstep::training::doctor {

/// Bounds of how far a clock is ahead of another, in seconds.
struct Skew {
  double low = 0;
  double high = 0;
};

/// Bounds from rounds in which one clock was read between `sent` and `returned` of the other, in seconds: those that
/// hold for all rounds.
struct Round {
  double sent = 0;
  double read = 0;
  double returned = 0;
};
[[nodiscard]] Skew bound_skew(const std::vector<Round>& rounds);

/// Collective: compares each rank's clock with rank 0's; at rank 0.
[[nodiscard]] std::vector<Skew> compare_clocks(const runtime::Communicator& world);

/// The `names` that this node's name service does not know, with the reasons; nothing if it has not answered for all
/// within the limit.
struct Resolved {
  int n = -1;
  std::vector<std::string> unresolved{};
};
[[nodiscard]] Resolved resolve(const std::vector<std::string>& names);

/// Whether the file is seen within 10 s by `clock`; looks for it every 0.1 s.
[[nodiscard]] bool await_file(const std::string& path, const core::Clock& clock);

/// Collective: rank 0 makes a file in `folder`, if it can, and each rank for which `looks` is true waits for it.
/// Returns what this rank has seen: "seen", "nothing to see", or why not. The file is removed.
[[nodiscard]] std::string meet_in(const runtime::Communicator& world, const std::string& folder, bool looks);

}  // namespace lockstep::training::doctor
