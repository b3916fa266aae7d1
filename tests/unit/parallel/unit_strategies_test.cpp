// Strategies that divide gradients and parameters give the bits of ddp, whatever order passes need units in.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "comm/transport_threads.hpp"
#include "parallel/host_synchronizer.hpp"
#include "parallel/traffic.hpp"
#include "unit/parallel/ranks.hpp"

namespace lockstep::parallel {
namespace {

using optim::OptimizerKind;
using support::Nodes;

/// A made network: which slots and units it has, and the nodes that read each unit.
struct Units {
  std::vector<Slot> slots{};
  std::vector<core::Slice> reads{};
};

/// What can be set of a run.
struct DrawnRun {
  Units units{};
  Nodes nodes{};
  OptimizerKind optimizer = OptimizerKind::sgd;
  double clip_norm = 0;
  bool is_deterministic = false;
  bool is_one_pass = true;
  std::size_t prefetch = 1;
  std::uint32_t seed = 0;

  [[nodiscard]] std::string text() const {
    return fmt::format("seed {}: {} units, {} slots, {}, {}, clip {}{}{}, prefetch {}", seed, units.reads.size(),
                       units.slots.size(), support::describe(nodes), optim::name(optimizer), clip_norm,
                       is_deterministic ? ", deterministic" : "", is_one_pass ? "" : ", several passes", prefetch);
  }
  [[nodiscard]] SynchronizerOptions options() const {
    SynchronizerOptions options{.optimizer = optim::default_spec(optimizer)};
    options.buckets = {{support::small_bucket_bytes}, {1'024}, {1'024}};
    options.is_deterministic = is_deterministic;
    options.guard_interval = 1;
    options.unit_reads = units.reads;
    options.prefetch = prefetch;
    options.is_one_pass = is_one_pass;
    return options;
  }
};

class UnitDraw {
 public:
  explicit UnitDraw(std::uint32_t seed) : random_{seed}, seed_{seed} {}

  std::size_t below(std::size_t n) { return random_() % n; }
  template <class T>
  T one_of(std::vector<T> values) {
    return values[below(values.size())];
  }

  DrawnRun run() {
    return {.units = units(),
            .nodes = one_of(support::placements()),
            .optimizer = one_of<OptimizerKind>(
                {OptimizerKind::sgd, OptimizerKind::adamw, OptimizerKind::lamb, OptimizerKind::lars}),
            .clip_norm = one_of<double>({0, 2}),
            .is_deterministic = below(2) == 0,
            .is_one_pass = below(4) > 0,
            .prefetch = below(3),
            .seed = seed_};
  }

 private:
  /// Reads of neighbours may overlap, and one unit may be read at both ends. Slots without a unit lie between units and
  /// after the last.
  Units units() {
    Units drawn;
    const std::size_t n = below(7);
    std::size_t offset = 0;
    const auto add = [&](std::optional<std::size_t> unit) {
      Slot slot{.name = fmt::format("t{}", drawn.slots.size()),
                .slice = {offset, one_of<std::size_t>({1, 16, 48, 1'023, 1'024, 2'500, 9'999})},
                .decays = below(3) > 0};
      slot.unit = unit;
      offset = core::round_up(slot.slice.end() + 16 * below(2), alignment);
      drawn.slots.push_back(slot);
    };
    for (std::size_t unit = 0; unit < n; ++unit) {
      for (std::size_t slots = 1 + below(3); slots > 0; --slots) add(unit);
      const std::size_t first = 2 * (n - 1 - unit) + 1;
      drawn.reads.push_back({first - below(2), 1 + below(4)});
      if (below(4) == 0) add(std::nullopt);
    }
    if (n > 1 && below(4) == 0) drawn.reads.back() = {0, 2 * n + 3};
    for (std::size_t slots = below(4) + (n == 0 ? 1 : 0); slots > 0; --slots) add(std::nullopt);
    return drawn;
  }

  std::mt19937 random_;
  std::uint32_t seed_;
};

float initial(std::size_t element) { return support::odd_value(element, 0, 77); }

/// What a rank sees of a run: all parameters as its forward and backward passes find them, in each step.
using Seen = std::vector<std::vector<float>>;

/// The passes of one rank.
class Passes {
 public:
  Passes(const DrawnRun& drawn, HostSynchronizer& synchronizer, int rank)
      : drawn_{drawn}, synchronizer_{synchronizer}, rank_{rank}, turns_{drawn.units.reads, 0} {}

  Seen seen{};

  void forward() {
    begin_seen();
    for (const std::size_t unit : turns_.order(false).units) {
      synchronizer_.acquire(unit, UnitUse::forward);
      see(unit);
    }
    see(std::nullopt);
  }

  void backward(int step) {
    begin_seen();
    std::size_t n_ready = 0;
    for (std::size_t turn = 0; turn < turns_.n_units(); ++turn) {
      const std::size_t unit = turns_.order(true).units[turn];
      synchronizer_.acquire(unit, UnitUse::backward);
      see(unit);
      const std::vector<bool> before = all_written();
      written_[unit] = true;
      for (std::size_t slot = 0; slot < before.size(); ++slot)
        if (!before[slot] && is_written(slot)) write_slot(slot, step);
      while (n_ready < drawn_.units.slots.size() && is_written(n_ready)) synchronizer_.ready(n_ready++);
    }
    for (std::size_t slot = 0; slot < drawn_.units.slots.size(); ++slot)
      if (!is_written(slot)) write_slot(slot, step);
    see(std::nullopt);
    written_.clear();
    while (n_ready < drawn_.units.slots.size()) synchronizer_.ready(n_ready++);
  }

 private:
  void begin_seen() { seen.emplace_back(arena_elements(drawn_.units.slots)); }
  /// Slots without a unit are complete with the unit before them in the arena, if there is a unit behind them.
  bool is_written(std::size_t slot) {
    const auto& slots = drawn_.units.slots;
    std::size_t of = slot;
    while (of > 0 && !slots[of].unit) --of;
    const bool is_in_front = std::any_of(slots.begin() + static_cast<std::ptrdiff_t>(slot), slots.end(),
                                         [](const Slot& behind) { return behind.unit.has_value(); });
    return slots[of].unit && is_in_front && written_[*slots[of].unit];
  }
  std::vector<bool> all_written() {
    std::vector<bool> all;
    for (std::size_t slot = 0; slot < drawn_.units.slots.size(); ++slot) all.push_back(is_written(slot));
    return all;
  }
  template <class Use>
  void for_slots_of(std::optional<std::size_t> unit, const Use& use) {
    for (std::size_t slot = 0; slot < drawn_.units.slots.size(); ++slot)
      if (drawn_.units.slots[slot].unit == unit) use(drawn_.units.slots[slot].slice, synchronizer_.place(slot));
  }
  void see(std::optional<std::size_t> unit) {
    for_slots_of(unit, [&](const core::Slice& slice, const SlotPlace& place) {
      std::ranges::copy(runtime::on_host(place.parameters), slice.of(std::span{seen.back()}).begin());
    });
  }
  void write_slot(std::size_t slot, int step) {
    const auto value = drawn_.is_deterministic ? support::odd_value : support::small_integer;
    const core::Slice& slice = drawn_.units.slots[slot].slice;
    const std::span<float> gradients = runtime::on_host(synchronizer_.place(slot).gradients);
    for (std::size_t i = 0; i < slice.count; ++i) gradients[i] = value(slice.offset + i, rank_, step);
  }

  const DrawnRun& drawn_;
  HostSynchronizer& synchronizer_;
  int rank_;
  UnitTurns turns_;
  std::map<std::size_t, bool> written_{};
};

/// Three steps, and an evaluation after each; also what rank 0 reads of all slots at the end.
std::vector<Seen> seen_by_ranks(const DrawnRun& drawn, Strategy strategy) {
  std::vector<Seen> seen(drawn.nodes.size());
  comm::run_as_threads(drawn.nodes, [&](comm::Transport& world) {
    HostSynchronizer synchronizer{world, drawn.units.slots, drawn.options(), strategy};
    support::set_parameters(synchronizer, initial);
    synchronizer.start({});
    Passes passes{drawn, synchronizer, world.rank()};
    for (int step = 0; step < 3; ++step) {
      passes.forward();
      passes.backward(step);
      synchronizer.step({.learning_rate = 0.05}, drawn.clip_norm);
      if (step < 2) passes.forward();  // an evaluation
    }
    EXPECT_FALSE(synchronizer.guard().has_changed());
    auto& last = passes.seen.emplace_back();
    for (std::size_t slot = 0; slot < drawn.units.slots.size(); ++slot) {
      const std::span<const float> values = synchronizer.read(slot);
      EXPECT_EQ(values.empty(), world.rank() != 0);
      last.insert(last.end(), values.begin(), values.end());
    }
    seen[static_cast<std::size_t>(world.rank())] = std::move(passes.seen);
  });
  return seen;
}

comm::Traffic traffic_of(const DrawnRun& drawn, Strategy strategy, int n_steps) {
  return comm::run_as_threads(drawn.nodes, [&](comm::Transport& world) {
    HostSynchronizer synchronizer{world, drawn.units.slots, drawn.options(), strategy};
    Passes passes{drawn, synchronizer, world.rank()};
    synchronizer.start({});
    for (int step = 0; step < n_steps; ++step) {
      passes.forward();
      passes.backward(step);
      synchronizer.step({.learning_rate = 0.05}, drawn.clip_norm);
    }
  });
}

TEST(UnitStrategies, SendWhatIsCountedBefore) {
  for (std::uint32_t seed = 1'001; seed <= 1'010; ++seed) {
    const DrawnRun drawn = UnitDraw{seed}.run();
    const SynchronizerOptions options = drawn.options();
    const Placement placement = place(drawn.nodes, drawn.is_deterministic);
    for (const Strategy strategy : all_strategies) {
      SCOPED_TRACE(testing::Message() << name(strategy) << ", " << drawn.text());
      const Sharding sharding = make_sharding(strategy, drawn.units.slots, options.buckets, placement);
      const comm::Cost cost = count_traffic(sharding, {.nodes = drawn.nodes,
                                                       .strategy = strategy,
                                                       .unit_reads = drawn.units.reads,
                                                       .prefetch = drawn.prefetch,
                                                       .is_deterministic = drawn.is_deterministic,
                                                       .clips = drawn.clip_norm > 0,
                                                       .has_norms = optim::needs_norms(drawn.optimizer)});
      const comm::Traffic one = traffic_of(drawn, strategy, 1), three = traffic_of(drawn, strategy, 3);
      EXPECT_EQ(three.messages - one.messages, 2 * cost.messages);
      EXPECT_EQ(three.bytes - one.bytes, 2 * cost.bytes);
    }
  }
}

bool has_same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::ranges::equal(std::as_bytes(std::span{a}), std::as_bytes(std::span{b}));
}

TEST(UnitStrategies, GiveTheBitsOfDdpForAnyOrderOfUnits) {
  for (std::uint32_t seed = 1; seed <= 16; ++seed) {
    const DrawnRun drawn = UnitDraw{seed}.run();
    const std::vector<Seen> expected = seen_by_ranks(drawn, Strategy::ddp);
    for (const Strategy strategy : all_strategies) {
      SCOPED_TRACE(testing::Message() << name(strategy) << ", " << drawn.text());
      const std::vector<Seen> seen = seen_by_ranks(drawn, strategy);
      for (std::size_t rank = 0; rank < seen.size(); ++rank) {
        ASSERT_EQ(seen[rank].size(), expected[rank].size());
        for (std::size_t i = 0; i < seen[rank].size(); ++i)
          ASSERT_TRUE(has_same_bits(seen[rank][i], expected[rank][i])) << "rank " << rank << ", pass " << i;
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::parallel
