// Steps of a host's synchronizer with made-up gradients, drawn by a seed: slots, buckets, nodes, optimizer, clipping.
// Invariant: the same seed draws the same run; sums are exact unless their order is fixed.
// Used by tests of what all strategies send, keep and guard.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "parallel/host_synchronizer.hpp"
#include "parallel/unit_turns.hpp"
#include "unit/parallel/ranks.hpp"

namespace lockstep::support {

/// Numbers of a seed.
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : random_{seed} {}

  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  template <class Values>
  auto one_of(const Values& values) {
    return values[below(std::size(values))];
  }

 private:
  std::mt19937_64 random_;
};

struct MadeRun {
  std::uint64_t seed = 0;
  std::vector<parallel::Slot> slots{};
  parallel::SynchronizerOptions options{};
  double clip_norm = 0;
  Nodes nodes{0};

  [[nodiscard]] std::string text() const {
    return fmt::format("seed {}: {} units, {} slots, {}, clip {}{}, {}", seed, options.unit_reads.size(), slots.size(),
                       optim::name(options.optimizer.kind), clip_norm,
                       options.is_deterministic ? ", deterministic" : "", describe(nodes));
  }
};

/// Up to four units of one to three slots, and slots in none of them; some are empty or smaller than a block, some may
/// be cut at multiples of a channel's elements only.
inline void draw_slots(Numbers& numbers, MadeRun& run) {
  std::size_t offset = 0;
  const auto add = [&](std::optional<std::size_t> unit) {
    const std::size_t size = numbers.below(std::array{2, 300, 3'000, 9'000}[numbers.below(4)]);
    parallel::Slot slot{.name = fmt::format("t{}", run.slots.size()),
                        .slice = {offset, unit ? size + 1 : size},
                        .decays = numbers.below(3) > 0};
    slot.block = numbers.one_of(std::array<std::size_t, 4>{1, 1, 16, 72});
    slot.unit = unit;
    offset = core::round_up(slot.slice.end(), parallel::alignment);
    run.slots.push_back(slot);
  };
  const std::size_t n_units = numbers.below(5);
  for (std::size_t unit = 0; unit < n_units; ++unit) {
    for (std::size_t n = 1 + numbers.below(3); n > 0; --n) add(unit);
    if (numbers.below(4) == 0) add(std::nullopt);
    run.options.unit_reads.push_back({2 * (n_units - 1 - unit) + 1 - numbers.below(2), 1 + numbers.below(4)});
  }
  for (std::size_t n = numbers.below(4) + (n_units == 0 ? 1 : 0); n > 0; --n) add(std::nullopt);
}

/// `placements`: the nodes of the ranks are one of them.
inline MadeRun draw_run(std::uint64_t seed, const std::vector<Nodes>& placements) {
  Numbers numbers{seed};
  MadeRun run{.seed = seed};
  run.nodes = placements[seed % placements.size()];
  const auto bytes = [&] { return core::Bytes{std::uint64_t{1'024} << numbers.below(7)}; };
  run.options = {.optimizer = optim::default_spec(numbers.one_of(optim::all_optimizer_kinds)),
                 .buckets = {bytes(), bytes(), bytes()},
                 .is_deterministic = numbers.below(2) == 0,
                 .guard_interval = 1,
                 .prefetch = numbers.below(3),
                 .is_one_pass = true};
  run.clip_norm = numbers.below(2) == 0 ? 0 : 2;
  draw_slots(numbers, run);
  return run;
}

/// One rank of a run.
class MadeRank {
 public:
  /// Collective. Each rank sets the parameters that it owns.
  MadeRank(const MadeRun& run, comm::Transport& world, parallel::Strategy strategy)
      : run_{run},
        rank_{world.rank()},
        turns_{run.options.unit_reads, 0},
        synchronizer_{world, run.slots, run.options, strategy} {
    synchronizer_.visit(parallel::Access::own, [](const parallel::StoredPiece& piece) {
      if (piece.state != "parameter") return;
      for (std::size_t i = 0; i < piece.values.size(); ++i) piece.values[i] = odd_value(piece.slice.offset + i, 0, 77);
    });
    synchronizer_.start({});
  }

  [[nodiscard]] parallel::HostSynchronizer& synchronizer() noexcept { return synchronizer_; }

  /// Collective: a pass forward and one backward, in which slots become ready one after another; then the update.
  void step(int number) {
    for (const std::size_t unit : turns_.order(false).units) synchronizer_.acquire(unit, parallel::UnitUse::forward);
    std::size_t n_ready = 0;
    std::vector<bool> is_written(run_.options.unit_reads.size());
    const auto report = [&] {
      for (; n_ready < run_.slots.size(); ++n_ready) {
        const auto& unit = run_.slots[n_ready].unit;
        if (unit && !is_written[*unit]) return;
        if (!unit) write(n_ready, number);
        synchronizer_.ready(n_ready);
      }
    };
    for (const std::size_t unit : turns_.order(true).units) {
      synchronizer_.acquire(unit, parallel::UnitUse::backward);
      for (std::size_t slot = 0; slot < run_.slots.size(); ++slot)
        if (run_.slots[slot].unit == unit) write(slot, number);
      is_written[unit] = true;
      report();
    }
    report();
    synchronizer_.step({.learning_rate = 0.05}, run_.clip_norm);
  }

 private:
  void write(std::size_t slot, int step) {
    const auto value = run_.options.is_deterministic ? odd_value : small_integer;
    const std::span<float> gradients = runtime::on_host(synchronizer_.place(slot).gradients);
    for (std::size_t i = 0; i < run_.slots[slot].slice.count; ++i)
      gradients[i] = value(run_.slots[slot].slice.offset + i, rank_, step);
  }

  const MadeRun& run_;
  int rank_;
  parallel::UnitTurns turns_;
  parallel::HostSynchronizer synchronizer_;
};

}  // namespace lockstep::support
