// Who takes part in a run: algorithms of comm's registry, and `auto`.
// Invariant: `auto` runs for each call what comm::choose() gives, whom training asks as well; it is no algorithm
// itself.
// Used by the option checks, the sweep and the demo.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "comm/registry.hpp"
#include "reduce_all/options.hpp"

namespace lockstep::reduce_all {

inline constexpr std::string_view auto_name = "auto";
inline constexpr std::string_view auto_summary =
    "what lockstep train chooses for such a call: one of these, by size and nodes";

struct Participant {
  const comm::Algorithm* algorithm = nullptr;  ///< null: `auto`

  [[nodiscard]] bool is_auto() const noexcept { return algorithm == nullptr; }
  [[nodiscard]] std::string_view name() const noexcept { return is_auto() ? auto_name : algorithm->name; }
  /// What it runs for `call` over ranks on these nodes.
  [[nodiscard]] const comm::Algorithm& runs(const comm::Call& call, std::span<const int> nodes) const {
    return is_auto() ? *comm::choose(call, nodes, false).algorithm : *algorithm;
  }
};

/// Whether an algorithm of this name is the MPI library's own.
[[nodiscard]] bool is_the_librarys(std::string_view name) noexcept;

/// Those named, or all without an obstacle and `auto`. Throws core::Error (usage) for a named one that has an obstacle.
[[nodiscard]] std::vector<Participant> find_participants(const Options& options, const comm::Transport& transport);

/// What `auto` runs for `calls`, of which those of the first type and op are read: `ring`, `ring, tree from 4 KiB on`.
[[nodiscard]] std::string describe_auto(std::span<const comm::Call> calls, std::span<const int> nodes);

}  // namespace lockstep::reduce_all
