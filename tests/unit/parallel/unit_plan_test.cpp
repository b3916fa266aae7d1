#include "parallel/unit_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <utility>

#include "comm/collective.hpp"
#include "comm/transport_threads.hpp"
#include "core/error.hpp"
#include "parallel/host_synchronizer.hpp"
#include "parallel/sharding.hpp"
#include "unit/parallel/ranks.hpp"

namespace lockstep::parallel {
namespace {

/// A tensor that is called by its size.
UnitTensor matrix(std::string unit, std::size_t n) { return {fmt::format("m{}", n), std::move(unit), n}; }
UnitTensor vector(std::string unit, std::size_t n) { return {fmt::format("v{}", n), std::move(unit), n, true}; }
UnitTensor shared(std::string unit, std::size_t n) { return {fmt::format("s{}", n), std::move(unit), n, false, true}; }

std::string text_of(const core::Slice& slice) { return fmt::format("{}+{}", slice.offset, slice.count); }

/// "name offset+count: tensor at offset, ...; ...; vectors offset+count: tensor at offset".
std::string text_of(const UnitPlan& plan, std::span<const UnitTensor> tensors) {
  std::string text;
  for (const Unit& unit : plan.units) {
    text += fmt::format("{}{} {}:", unit.name, unit.is_resident ? " (resident)" : "", text_of(unit.slice));
    for (const std::size_t i : unit.tensors) text += fmt::format(" {} at {}", i, plan.places[i].offset);
    text += "; ";
  }
  text += fmt::format("vectors {}:", text_of(plan.vectors));
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].is_vector) text += fmt::format(" {} at {}", i, plan.places[i].offset);
  return text;
}

struct UnitCase {
  const char* name;
  std::vector<UnitTensor> tensors;
  UnitOptions options;
  const char* expected;
};

const std::vector<UnitCase>& cases() {
  static const std::vector<UnitCase> all{
      {"nothing", {}, {}, "vectors 0+0:"},
      {"vectors alone", {vector("a", 5), vector("", 16), vector("b", 1)}, {}, "vectors 0+48: 0 at 0 1 at 16 2 at 32"},
      {"no blocks",
       {matrix("", 10), vector("", 3), matrix("", 1'025)},
       {},
       "m10 to m1025 0+3072: 0 at 0 2 at 1024; "
       "vectors 3072+16: 1 at 3072"},
      {"a matrix outside of blocks is a unit",
       {matrix("", 1), matrix("b", 9), matrix("b", 9), matrix("", 2), matrix("a", 9), matrix("", 3)},
       {.least_elements = 1},
       "m1 0+1024: 0 at 0; b 1024+2048: 1 at 1024 2 at 2048; m2 3072+1024: 3 at 3072; a 4096+1024: 4 at 4096; "
       "m3 5120+1024: 5 at 5120; vectors 6144+0:"},
      {"small blocks are joined in order, and the rest joins the one before",
       {matrix("e", 9), matrix("d", 9), matrix("c", 30), matrix("b", 20), matrix("a", 9)},
       {.least_elements = 18},
       "e to d 0+2048: 0 at 0 1 at 1024; c 2048+1024: 2 at 2048; b to a 3072+2048: 3 at 3072 4 at 4096; "
       "vectors 5120+0:"},
      {"a shared matrix is resident and never joined, also in a block",
       {matrix("b", 30), matrix("a", 9), shared("", 1), shared("c", 2)},
       {.least_elements = 18},
       "b to a 0+2048: 0 at 0 1 at 1024; s1 (resident) 2048+1024: 2 at 2048; s2 (resident) 3072+1024: 3 at 3072; "
       "vectors 4096+0:"},
      {"what is small beside a resident unit stays alone",
       {shared("", 1), matrix("a", 9)},
       {.least_elements = 18},
       "s1 (resident) 0+1024: 0 at 0; a 1024+1024: 1 at 1024; vectors 2048+0:"},
      {"units are multiples of parts of whole blocks",
       {matrix("b", 1'024), vector("b", 20), matrix("a", 3'073), vector("a", 1)},
       {.least_elements = 1, .n_parts = 3},
       "b 0+3072: 0 at 0; a 3072+6144: 2 at 3072; vectors 9216+48: 1 at 9216 3 at 9248"},
  };
  return all;
}

TEST(Units, AreThoseOfTheTable) {
  for (const UnitCase& one : cases())
    EXPECT_EQ(text_of(plan_units(one.tensors, one.options), one.tensors), one.expected) << one.name;
}

TEST(Units, RefuseABlockWhoseMatricesAreNoNeighbours) {
  const std::vector<UnitTensor> apart{matrix("a", 1), matrix("b", 1), matrix("a", 1)};
  EXPECT_THROW(static_cast<void>(plan_units(apart, {})), core::Error);
  const std::vector<UnitTensor> vector_apart{matrix("a", 1), matrix("b", 1), vector("a", 1)};
  EXPECT_NO_THROW(static_cast<void>(plan_units(vector_apart, {})));
}

struct Draw {
  std::vector<UnitTensor> tensors{};
  UnitOptions options{};
};

/// Blocks of zero to four tensors, and matrices beside them; often a shared matrix at the end.
Draw draw(std::mt19937_64& random) {
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  Draw drawn{.options = {.least_elements = below(40'000), .n_parts = 1 + below(9)}};
  const std::size_t n_blocks = below(9);
  for (std::size_t block = 0; block <= n_blocks; ++block) {
    const std::size_t n_tensors = below(5);
    const bool is_alone = below(4) == 0;
    for (std::size_t i = 0; i < n_tensors; ++i) {
      const bool is_vector = below(3) == 0;
      const std::size_t largest = is_vector ? 300 : below(2) == 0 ? 2'000 : 70'000;
      drawn.tensors.push_back({.name = fmt::format("tensor{}.{}", n_blocks - block, i),
                               .unit = is_alone ? "" : fmt::format("block{}", n_blocks - block),
                               .n_elements = below(largest),
                               .is_vector = is_vector});
    }
  }
  if (below(2) == 0) drawn.tensors.push_back(shared("", below(70'000)));
  return drawn;
}

/// Checks that places of `tensors` follow one another within `region`, each at a multiple of `multiple`.
void expect_ascending(const UnitPlan& plan, std::span<const std::size_t> tensors, const core::Slice& region,
                      std::size_t multiple) {
  std::size_t at = region.offset;
  for (const std::size_t i : tensors) {
    EXPECT_GE(plan.places[i].offset, at);
    EXPECT_LT(plan.places[i].offset, at + multiple) << "no larger gap than alignment needs";
    EXPECT_EQ(plan.places[i].offset % multiple, 0u);
    at = plan.places[i].end();
  }
  EXPECT_LE(at, region.end());
}

void expect_sound(const UnitPlan& plan, const Draw& drawn) {
  std::vector<std::size_t> in_units, matrices, vectors;
  for (std::size_t i = 0; i < drawn.tensors.size(); ++i) {
    EXPECT_EQ(plan.places[i].count, drawn.tensors[i].n_elements);
    (drawn.tensors[i].is_vector ? vectors : matrices).push_back(i);
  }
  std::size_t at = 0;
  for (std::size_t u = 0; u < plan.units.size(); ++u) {
    const Unit& unit = plan.units[u];
    EXPECT_EQ(unit.slice.offset, at);
    EXPECT_EQ(unit.slice.count % (drawn.options.n_parts * block_elements), 0u);
    expect_ascending(plan, unit.tensors, unit.slice, block_elements);
    in_units.insert(in_units.end(), unit.tensors.begin(), unit.tensors.end());
    at = unit.slice.end();
    const auto n_in = [&](const Unit& one) {
      std::size_t n = 0;
      for (const std::size_t i : one.tensors) n += drawn.tensors[i].n_elements;
      return n;
    };
    const auto joins = [&](std::size_t other) { return other < plan.units.size() && !plan.units[other].is_resident; };
    if (!unit.is_resident && n_in(unit) < drawn.options.least_elements) {
      EXPECT_FALSE(joins(u + 1) || (u > 0 && joins(u - 1))) << unit.name << " is small";
    }
  }
  EXPECT_EQ(in_units, matrices) << "each matrix is in one unit, in order";
  EXPECT_EQ(plan.vectors.offset, at);
  expect_ascending(plan, vectors, plan.vectors, alignment);
  EXPECT_EQ(plan.n_elements(), plan.vectors.end());
}

/// The slots of a plan: matrices, then vectors. Blocks of matrices are drawn: of layouts that cut between elements, or
/// between rows of any length.
std::vector<Slot> draw_slots(const UnitPlan& plan, std::span<const UnitTensor> tensors, std::mt19937_64& random) {
  constexpr std::array<std::size_t, 8> blocks{16, 16, 1, 8, 64, 1'024, 768, 1'600};
  std::vector<Slot> slots;
  for (const bool is_vector : {false, true})
    for (std::size_t i = 0; i < tensors.size(); ++i)
      if (tensors[i].is_vector == is_vector)
        slots.push_back({.name = fmt::format("t{}", i),
                         .slice = plan.places[i],
                         .block = is_vector ? 1 : blocks[random() % blocks.size()]});
  return slots;
}

struct CutCounts {
  std::size_t n_kept = 0;
  std::size_t n_moved = 0;
};

/// Checks the place in the arena that a cut of comm::Call came to. It stays where the slot's blocks divide
/// block_elements, and else moves by half of a cut length at most.
void expect_cut(std::span<const Slot> slots, std::size_t wanted, std::size_t found, CutCounts& counts) {
  const auto after = std::ranges::upper_bound(slots, wanted, {}, [](const Slot& slot) { return slot.slice.offset; });
  const Slot& slot = *std::prev(after);
  ++(found == wanted ? counts.n_kept : counts.n_moved);
  const std::size_t most = block_elements % slot.block == 0 ? 0 : cut_length(slot) / 2;
  EXPECT_LE(std::max(found, wanted) - std::min(found, wanted), most) << slot.name;
}

/// Checks that owners have the parts of all units that comm::Call gives them, and that blocks are not cut.
void expect_equal_parts(const UnitPlan& plan, const Draw& drawn, std::span<const Slot> slots, bool is_order_fixed,
                        CutCounts& counts) {
  std::vector<core::Slice> units;
  for (const Unit& unit : plan.units) units.push_back(unit.slice);
  const Sharding sharding{{slots.begin(), slots.end()}, units, drawn.options.n_parts, is_order_fixed};
  const auto n_ranks = static_cast<int>(drawn.options.n_parts);
  for (std::size_t u = 0; u < units.size(); ++u) {
    const comm::Call call{
        .collective = comm::Collective::reduce_scatter, .n_elements = units[u].count, .is_order_fixed = is_order_fixed};
    std::vector<Piece> blocks;
    for (int rank = 0; rank < n_ranks; ++rank) {
      const core::Slice slice = sharding.slices_of(static_cast<std::size_t>(rank))[u], part = call.part(rank, n_ranks);
      EXPECT_EQ(part.count * drawn.options.n_parts, units[u].count);
      expect_cut(slots, units[u].offset + part.offset, slice.offset, counts);
      expect_cut(slots, units[u].offset + part.end(), slice.end(), counts);
      std::ranges::copy(blocks_in(slots, slice), std::back_inserter(blocks));
    }
    std::ranges::sort(blocks, {}, [](const Piece& block) { return block.slice.offset; });
    EXPECT_EQ(blocks, blocks_in(slots, units[u])) << "slices of all owners are the unit";
  }
}

TEST(Units, AnyTensorsHaveOnePlaceEachAndEqualParts) {
  std::mt19937_64 random{20'261'129};
  std::size_t n_joined = 0, n_resident = 0, n_cut = 0;
  CutCounts counts;
  for (int i = 0; i < 500; ++i) {
    SCOPED_TRACE(i);
    const Draw drawn = draw(random);
    const UnitPlan plan = plan_units(drawn.tensors, drawn.options);
    expect_sound(plan, drawn);
    const std::vector<Slot> slots = draw_slots(plan, drawn.tensors, random);
    for (const bool is_order_fixed : {false, true}) expect_equal_parts(plan, drawn, slots, is_order_fixed, counts);
    UnitPlan alone = plan_units(drawn.tensors, {.least_elements = drawn.options.least_elements});
    ASSERT_EQ(alone.units.size(), plan.units.size()) << "only places depend on the number of parts";
    for (std::size_t u = 0; u < plan.units.size(); ++u) {
      EXPECT_EQ(alone.units[u].name, plan.units[u].name);
      EXPECT_EQ(alone.units[u].tensors, plan.units[u].tensors);
      n_joined += plan.units[u].name.find(" to ") != std::string::npos ? 1 : 0;
      n_resident += plan.units[u].is_resident ? 1 : 0;
      n_cut += plan.units[u].slice.count > drawn.options.n_parts * block_elements ? 1 : 0;
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(n_joined, 100u);
  EXPECT_GT(n_resident, 100u);
  EXPECT_GT(n_cut, 100u);
  EXPECT_GT(counts.n_kept, 1'000u);
  EXPECT_GT(counts.n_moved, 100u);
}

using Tensors = std::map<std::string, std::vector<float>>;

/// The parameters of each tensor after three steps, with gradients that depend on a tensor's name and element only.
Tensors train_tensors(const support::Nodes& nodes, const std::vector<Slot>& slots, const SynchronizerOptions& options) {
  Tensors after;
  comm::run_as_threads(nodes, [&](comm::Transport& world) {
    HostSynchronizer synchronizer{world, slots, options};
    const auto fill = [&](std::span<float> arena, int rank, int step) {
      for (const Slot& slot : slots)
        support::fill({&slot, 1}, arena, [&](std::size_t i) {
          return support::odd_value(std::hash<std::string>{}(slot.name) % 997 + i - slot.slice.offset, rank, step);
        });
    };
    if (world.rank() == 0) fill(synchronizer.parameters(), 0, 77);
    synchronizer.start({});
    for (int step = 0; step < 3; ++step) {
      fill(synchronizer.gradients(), world.rank(), step);
      static_cast<void>(synchronizer.step({.learning_rate = 0.25, .scale = 8}));
    }
    if (world.rank() != 0) return;
    for (const Slot& slot : slots) {
      const auto values = slot.slice.of(synchronizer.parameters());
      after[slot.name].assign(values.begin(), values.end());
    }
  });
  return after;
}

/// The slots of make_slots(), placed in units: matrices on blocks, and short ones as vectors at the end.
std::vector<Slot> in_units(std::vector<Slot> slots) {
  std::vector<UnitTensor> tensors;
  for (const Slot& slot : slots) tensors.push_back({slot.name, "", slot.slice.count, slot.slice.count < 300});
  const UnitPlan plan = plan_units(tensors, {});
  for (std::size_t i = 0; i < slots.size(); ++i) slots[i].slice = plan.places[i];
  std::ranges::sort(slots, {}, [](const Slot& slot) { return std::pair{slot.slice.offset, slot.slice.count}; });
  return slots;
}

// Each element has its own sum, and norms of tensors are sums over blocks of one tensor. Only the norm for clipping
// adds tensors in the order of the arena.
TEST(Units, ChangeNoBitsOfSteps) {
  const std::vector<Slot> dense = support::odd_slots(), apart = in_units(dense);
  ASSERT_NE(dense[0].name, apart[0].name);
  for (const optim::OptimizerKind kind :
       {optim::OptimizerKind::sgd, optim::OptimizerKind::adamw, optim::OptimizerKind::lars, optim::OptimizerKind::lamb})
    for (const support::Nodes& nodes :
         {support::Nodes{0}, support::Nodes{0, 0}, support::Nodes{0, 1}, support::Nodes{0, 0, 1, 1}}) {
      SynchronizerOptions options{.optimizer = optim::default_spec(kind), .is_deterministic = true};
      options.buckets = {{support::small_bucket_bytes}, {1'024}, {1'024}};
      EXPECT_EQ(train_tensors(nodes, apart, options), train_tensors(nodes, dense, options)) << support::describe(nodes);
    }
}

}  // namespace
}  // namespace lockstep::parallel
