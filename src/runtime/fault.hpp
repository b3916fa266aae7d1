// Faults injected at an exact place (--inject): fire drills for users, and tests of alarms.
// Invariant: without faults nothing here is called. A fault affects only its rank (`move`: all), and only once, except
// `each`, `delay`, `move`, and `io` with TIMES.
// Used by both programs, the watchdog (which knows where a phase begins), and the writers of checkpoints and shards.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.hpp"

namespace lockstep::runtime {

/// The command line that takes the fault: reduce_all, lockstep train, or a verb of lockstep shard that makes a set.
enum class FaultTaker : unsigned { reduce_all = 1, train = 2, shard = 4 };

struct FaultKind;

/// A parsed fault; its kind determines which members are used.
struct Fault {
  const FaultKind* kind = nullptr;
  std::string text{};  ///< as typed
  int rank = 0;
  std::string place{};       ///< a phase, or `write` or `sync`; for `delay` the timed phase
  std::uint64_t number = 0;  ///< step, batch, visit of the place, element or looks; 0: the first
  bool is_each = false;      ///< at every visit
  std::uint64_t amount = 0;  ///< percent, or how often a write fails
  core::Seconds time{};
  std::string parameter{};
};

/// Parses "stop:1:training:3,late:0:save:2s". Throws core::Error (usage) for a form that `taker` does not take.
[[nodiscard]] std::vector<Fault> parse_faults(std::string_view text, FaultTaker taker);

/// For --help: a line for each kind of fault that `taker` takes, and its places.
[[nodiscard]] std::string fault_help(FaultTaker taker);

/// One process's part in a drill; faults of other ranks do nothing here. reach() and write() may be called by any
/// thread.
class Drill {
 public:
  explicit Drill(std::vector<Fault> faults = {});
  /// Adds the faults that parse_faults() returns.
  void add(std::string_view text, FaultTaker taker);

  [[nodiscard]] bool is_empty() const noexcept { return armed_.empty(); }
  /// The faults as typed.
  [[nodiscard]] std::vector<std::string> texts() const;
  /// Until MPI starts, this may be the launcher's guess.
  void set_rank(int rank) noexcept { rank_.store(rank); }
  /// Returns the faults of a kind, of all ranks, for code that knows whether the element or parameter exists.
  [[nodiscard]] std::vector<Fault> named(std::string_view kind) const;
  /// Whether some faults are visible only in checks of results.
  [[nodiscard]] bool is_of_checks() const;
  /// Throws core::Error (usage) if a fault names a rank that does not exist.
  void require_ranks(int n_ranks) const;
  /// Throws core::Error (usage) if a fault names a step outside 1 to `n_steps`.
  void require_steps(std::uint64_t n_steps) const;

  /// Reports that this rank reaches a place once more.
  void reach(std::string_view place) { strike(place, 0); }
  /// Reports that the rank reaches a step or batch of the phase, counting from 1.
  void reach(std::string_view place, std::uint64_t number) { strike(place, number); }
  /// Reports that the rank is about to write, or to sync, a part of a file; returns the errno to fail with, or 0.
  [[nodiscard]] int write(std::string_view place);

  /// Returns, once, the parameters with a bit to flip before this step.
  [[nodiscard]] std::vector<std::string> take_flips(std::uint64_t step);
  /// Returns, once, the element with a bit to flip, if the output has that many.
  [[nodiscard]] std::optional<std::size_t> take_wrong(std::size_t n_elements);
  /// The simulated core distance in ns: 100 for this many looks, then 400 for as many, and so on, on every rank.
  [[nodiscard]] double distance(double measured_ns);
  /// Spins for the fault's percentage of `time`, the duration of the phase `timed`, if this rank is to be delayed in
  /// it.
  void slow_down(std::string_view timed, core::Seconds time);

  /// The faults of this rank that never struck, as typed.
  [[nodiscard]] std::vector<std::string> unreached() const;

 private:
  struct Armed {
    explicit Armed(Fault the_fault) : fault{std::move(the_fault)} {}
    Fault fault;
    std::atomic<std::uint64_t> n_reached{0};
    std::atomic<std::uint64_t> n_struck{0};
  };

  void strike(std::string_view place, std::uint64_t number);
  [[nodiscard]] bool is_mine(const Armed& armed) const noexcept { return armed.fault.rank == rank_.load(); }
  [[nodiscard]] static bool is_due(Armed& armed, std::uint64_t number) noexcept;

  std::deque<Armed> armed_{};  // a deque, because elements cannot be moved
  std::atomic<int> rank_{0};
};

}  // namespace lockstep::runtime
