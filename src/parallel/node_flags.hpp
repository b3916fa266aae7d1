// The progress of each rank of a node in its step, through shared memory; and the time that this rank waits for others.
// Invariant: one writer per flag, values only grow; a rank that has seen a value sees everything written before it.
// Used by the synchronizer and its parts.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "comm/flag.hpp"
#include "comm/transport.hpp"
#include "core/timer.hpp"
#include "runtime/watch/wait.hpp"

namespace lockstep::parallel {

/// What a flag counts.
enum class Stage : std::uint8_t {
  gradients,   ///< buckets complete, plus one per step: the rank no longer reads parameters
  norms,       ///< steps whose partial norms are written
  parameters,  ///< steps whose updates are written
  halt,        ///< starts after which updates are halted; no rank waits for it
  sums,        ///< buckets of pooled gradients whose sums have left the gradients of the node's ranks
  needs,       ///< units that passes have begun to need
  gathers      ///< gathers of units that are complete
};
inline constexpr std::size_t n_stages = 7;

class NodeFlags {
 public:
  /// Collective over the ranks of one node.
  explicit NodeFlags(comm::Transport& node);

  void publish(Stage stage, std::uint64_t value) noexcept { flag(node_.rank(), stage).publish(value); }

  [[nodiscard]] bool all_reached(Stage stage, std::uint64_t value) const noexcept;
  [[nodiscard]] bool any_reached(Stage stage, std::uint64_t value) const noexcept;

  /// Returns when all ranks have reached `value`; calls `meanwhile` between checks.
  template <class Meanwhile>
  void await_all(Stage stage, std::uint64_t value, Meanwhile meanwhile) {
    if (all_reached(stage, value)) return;
    wait(wait_of(stage), 0, [&] {
      comm::wait_until(node_, [&] {
        meanwhile();
        return all_reached(stage, value);
      });
    });
  }
  void await_all(Stage stage, std::uint64_t value) {
    await_all(stage, value, [] {});
  }

  /// Calls `until_then`, which waits for other ranks.
  template <class UntilThen>
  void wait(runtime::Wait what, std::size_t number, UntilThen until_then) {
    const core::Stopwatch watch;
    if (on_wait_) on_wait_(what, number);
    until_then();
    if (on_wait_) on_wait_(runtime::Wait::nothing, 0);
    waited_ += watch.elapsed().value;
  }

  /// Sets a function that is called whenever this rank begins or ends waiting for others.
  void set_on_wait(runtime::OnWait on_wait) { on_wait_ = std::move(on_wait); }

  /// Time spent in wait() and await_all() since construction.
  [[nodiscard]] core::Seconds waited() const noexcept { return {waited_}; }

 private:
  [[nodiscard]] static runtime::Wait wait_of(Stage stage) noexcept;
  [[nodiscard]] comm::Flag& flag(int rank, Stage stage) const noexcept;

  comm::Transport& node_;
  std::unique_ptr<comm::SharedSegment> segment_;
  std::vector<comm::Flag*> flags_;  ///< the first flag of each rank
  runtime::OnWait on_wait_{};
  double waited_ = 0;
};

}  // namespace lockstep::parallel
