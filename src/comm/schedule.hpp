// A schedule: one rank's part of a collective as a straight list of steps, made before anything runs.
// Invariant: a pure function of (rank, ranks, call), so algorithms can be read, costed and tested without a network.
// Written by algorithms/; run by scheduled_plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/collective.hpp"
#include "comm/plan.hpp"
#include "comm/transport.hpp"
#include "core/slice.hpp"

namespace lockstep::comm {

/// The buffer of a region.
enum class Operand : std::uint8_t { input, output, scratch };

/// A part of a buffer.
struct Region {
  Operand operand = Operand::input;
  core::Slice slice{};

  friend constexpr bool operator==(const Region&, const Region&) noexcept = default;
};

enum class Action : std::uint8_t { send, recv, wait, combine, copy, divide };

/// One step. `slot` numbers a pending message from send/recv to its wait.
struct Step {
  Action action = Action::wait;
  int slot = 0;
  int peer = 0;
  Region target;  ///< of recv, combine, copy, divide
  Region first;   ///< of send, combine, copy, divide
  Region second;  ///< of combine: target = first op second
};

/// Steps of one rank. Empty regions make no step, on either side.
class Schedule {
 public:
  void send(int slot, int to, Region from);
  void recv(int slot, int from, Region into);
  /// Does nothing if the slot is idle, so a loop may wait for a slot that it has not used yet.
  void wait(int slot);
  void combine(Region target, Region first, Region second);
  /// Does nothing if both are the same region.
  void copy(Region target, Region source);
  /// Divides in place; does nothing for a divisor of 1.
  void divide(Region target, int divisor);

  /// Reserves scratch memory.
  [[nodiscard]] Region scratch(std::size_t count);

  [[nodiscard]] const std::vector<Step>& steps() const noexcept { return steps_; }
  [[nodiscard]] std::size_t scratch_elements() const noexcept { return scratch_elements_; }
  [[nodiscard]] int n_slots() const noexcept { return static_cast<int>(busy_.size()); }
  [[nodiscard]] int divisor() const noexcept { return divisor_; }

 private:
  void occupy(int slot);

  std::vector<Step> steps_;
  std::vector<bool> busy_;
  std::size_t scratch_elements_ = 0;
  int divisor_ = 1;
};

/// The facts from which an algorithm writes the schedule of one rank.
struct Setting {
  int rank = 0;
  int n_ranks = 1;
  Call call;

  [[nodiscard]] core::Slice part(int rank_of_part) const noexcept { return call.part(rank_of_part, n_ranks); }
  [[nodiscard]] core::Slice whole() const noexcept { return {0, call.n_elements}; }
  /// The divisor of the finished sum.
  [[nodiscard]] int divisor() const noexcept { return call.op == ReduceOp::avg ? n_ranks : 1; }
};

/// Any collective on one rank: a copy.
[[nodiscard]] Schedule copy_alone(const Setting& setting);

/// The number of segments of a message of `count` elements such that none exceeds `segment_bytes`; at least 1.
[[nodiscard]] std::size_t count_segments(const Call& call, std::size_t count, std::size_t segment_bytes) noexcept;

/// Collective: a plan that runs `schedule` over `transport`.
[[nodiscard]] std::unique_ptr<Plan> make_scheduled_plan(Transport& transport, const Call& call, Schedule schedule);

}  // namespace lockstep::comm
