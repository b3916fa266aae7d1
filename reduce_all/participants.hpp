// The participants of a run: algorithms of comm's registry, and `auto`.
// Invariant: `auto` runs for each call the choice of comm::choose(), as training does; it is not an algorithm itself.
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
    "the choice of lockstep train for such a call: one of these, by size and nodes";

struct Participant {
  const comm::Algorithm* algorithm = nullptr;  ///< null: `auto`

  [[nodiscard]] bool is_auto() const noexcept { return algorithm == nullptr; }
  [[nodiscard]] std::string_view name() const noexcept { return is_auto() ? auto_name : algorithm->name; }
  /// The algorithm that it runs for `call` over these ranks with such devices.
  [[nodiscard]] const comm::Algorithm& runs(const comm::Call& call, const comm::Transport& transport,
                                            comm::Devices devices = comm::Devices::none) const;
};

/// Whether an algorithm of this name is the MPI library's own.
[[nodiscard]] bool is_the_librarys(std::string_view name) noexcept;

/// The named algorithms, or all that support any of `calls` and are not variants, and `auto`. Throws core::Error
/// (usage) for a named one that has an obstacle to any call.
[[nodiscard]] std::vector<Participant> find_participants(const Options& options, std::span<const comm::Call> calls,
                                                         const comm::Transport& transport,
                                                         comm::Devices devices = comm::Devices::none);

/// The algorithms of `auto` for those `calls` that have the first type and op: `ring`, `ring, tree from 4 KiB on`.
[[nodiscard]] std::string describe_auto(std::span<const comm::Call> calls, const comm::Transport& transport,
                                        comm::Devices devices = comm::Devices::none);

}  // namespace lockstep::reduce_all
