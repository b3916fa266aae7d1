#include "nn/plan/unit_walk.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/rng.hpp"
#include "nn/plan/empty_pass.hpp"
#include "unit/nn/unit_turns.hpp"

namespace lockstep::nn {
namespace {

enum class WalkKind { need, node, done };

/// What happens in a pass: a unit, or the part of a node.
struct WalkEvent {
  WalkKind kind = WalkKind::node;
  std::size_t number = 0;
};

class WalkListener final : public Hooks {
 public:
  std::vector<WalkEvent> events{};
  std::size_t n_ready = 0;

 private:
  void touched(std::size_t, std::span<const std::uint64_t>) override {}
  void ready(std::size_t slot) override { EXPECT_EQ(slot, n_ready++); }
  void sum(runtime::DeviceSpan<double>, runtime::Stream&) override {}
  void need(std::size_t unit, runtime::Stream&) override { events.push_back({WalkKind::need, unit}); }
  void done(std::size_t unit, runtime::Stream&) override { events.push_back({WalkKind::done, unit}); }
};

struct Walks {
  std::vector<WalkEvent> forward{}, backward{};
};

Walks walks_of(const Network& net, const PlaceParameters& place) {
  const PassPlan plan = plan_pass(net);
  std::vector<ArenaSlot> unplaced;
  for (const PlannedParameter& planned : plan.parameters)
    unplaced.push_back({.parameter = planned.parameter, .slice = {.count = slot_multiple}});
  const ParameterSlots slots{net, plan, unplaced, place};
  WalkListener listener;
  runtime::Stream stream;
  const auto note = [&](std::size_t node) { listener.events.push_back({WalkKind::node, node}); };
  Walks walks;
  forward_without_samples(plan, slots, listener, stream, note);
  walks.forward = std::exchange(listener.events, {});
  EXPECT_EQ(listener.n_ready, 0u);
  backward_without_samples(plan, slots, listener, stream, [&](const BackwardStep& step) { note(step.node); });
  walks.backward = std::exchange(listener.events, {});
  EXPECT_EQ(listener.n_ready, slots.all().size());
  return walks;
}

/// "+unit" is needed, "-unit" done; the others are nodes.
std::string text_of_walk(const Network& net, const std::vector<WalkEvent>& events) {
  std::string text;
  for (const auto& [kind, number] : events)
    text += (text.empty() ? "" : " ") + (kind == WalkKind::node   ? net.nodes()[number].name
                                         : kind == WalkKind::need ? fmt::format("+{}", number)
                                                                  : fmt::format("-{}", number));
  return text;
}

Network one_layer() {
  Network net;
  net.linear("fc", net.input({8}), {.n_out = 2});
  return net;
}

Network without_blocks() {
  Network net;
  net.linear("b", net.relu(net.linear("a", net.input({8}), {.n_out = 8})), {.n_out = 2});
  return net;
}

Network of_blocks() {
  Network net;
  Value x = net.linear("stem", net.input({8}), {.n_out = 8});
  for (const char* const name : {"h.0", "h.1"}) {
    const NameScope scope = net.unit(name);
    const Value y = net.relu(net.linear("a", x, {.n_out = 8}));
    x = net.add(x, net.linear("b", y, {.n_out = 8, .has_bias = false}));
  }
  net.linear("head", x, {.n_out = 2});
  return net;
}

Network with_tied_head() {
  Network net;
  const Value wte = net.embedding("wte", net.ids(2), {.n_rows = 9, .width = 4, .column = std::nullopt});
  Value x = wte;
  {
    const NameScope scope = net.unit("h.0");
    x = net.linear("fc", x, {.n_out = 4});
  }
  net.linear("head", x, {.n_out = 9, .has_bias = false}, wte);
  return net;
}

std::vector<Placed> all_in_unit_7(std::span<const Unplaced> parameters) {
  std::vector<Placed> places = place_with_gaps(parameters);
  for (Placed& place : places)
    if (place.unit) place.unit = 7;
  return places;
}

TEST(UnitWalk, IsThatOfTheNetwork) {
  struct Row {
    Network net;
    PlaceParameters place;
    const char* forward;
    const char* backward;
  };
  const std::vector<Row> rows{
      {one_layer(), {}, "input fc", "fc"},
      {one_layer(), place_with_gaps, "input +0 fc -0", "+0 fc -0"},
      {without_blocks(), place_with_gaps, "input +1 a -1 relu +0 b -0", "+0 b -0 relu +1 a -1"},
      {of_blocks(), place_with_gaps,
       "input +3 stem -3 +2 h.0.a h.0.relu h.0.b -2 h.0.add +1 h.1.a h.1.relu h.1.b -1 h.1.add +0 head -0",
       "+0 head -0 h.1.add +1 h.1.b h.1.relu h.1.a -1 h.0.add +2 h.0.b h.0.relu h.0.a -2 +3 stem -3"},
      {of_blocks(), all_in_unit_7, "input +7 stem h.0.a h.0.relu h.0.b h.0.add h.1.a h.1.relu h.1.b h.1.add head -7",
       "+7 head h.1.add h.1.b h.1.relu h.1.a h.0.add h.0.b h.0.relu h.0.a stem -7"},
      {with_tied_head(), place_with_gaps, "ids +1 wte +0 h.0.fc -0 head -1", "+1 head +0 h.0.fc -0 wte -1"},
  };
  for (const Row& row : rows) {
    const Walks walks = walks_of(row.net, row.place);
    EXPECT_EQ(text_of_walk(row.net, walks.forward), row.forward);
    EXPECT_EQ(text_of_walk(row.net, walks.backward), row.backward);
  }
}

/// The units of a node's parameters; `units` by name of parameter.
std::set<std::size_t> units_read(const Network& net, const std::map<std::string, std::size_t>& units,
                                 std::size_t node) {
  std::set<std::size_t> found;
  for (const int parameter : net.nodes()[node].parameters) {
    const auto unit = units.find(net.parameters()[static_cast<std::size_t>(parameter)].name);
    if (unit != units.end()) found.insert(unit->second);
  }
  return found;
}

/// Every unit is needed once, immediately before a node that reads it, and done once, immediately after one. All nodes
/// that read it are between.
void expect_around_readers(const Network& net, const std::map<std::string, std::size_t>& units,
                           const std::vector<WalkEvent>& events) {
  const auto is_node = [](const WalkEvent& event) { return event.kind == WalkKind::node; };
  std::set<std::size_t> needed, needed_now;
  for (auto event = events.begin(); event != events.end(); ++event) {
    const auto& [kind, number] = *event;
    if (kind == WalkKind::need) {
      EXPECT_TRUE(needed.insert(number).second);
      needed_now.insert(number);
      const auto next = std::find_if(event, events.end(), is_node);
      ASSERT_NE(next, events.end());
      EXPECT_EQ(units_read(net, units, next->number).count(number), 1u);
    } else if (kind == WalkKind::done) {
      EXPECT_EQ(needed_now.erase(number), 1u);
      const auto before = std::find_if(std::make_reverse_iterator(event), events.rend(), is_node);
      ASSERT_NE(before, events.rend());
      EXPECT_EQ(units_read(net, units, before->number).count(number), 1u);
    } else {
      for (const std::size_t unit : units_read(net, units, number)) EXPECT_EQ(needed_now.count(unit), 1u);
    }
  }
  EXPECT_TRUE(needed_now.empty());
}

TEST(UnitWalk, KeepsUnitsAsLongAsNodesReadThem) {
  std::size_t n_events = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    core::Random random{seed};
    const Network net = drawn_network(random);
    std::map<std::string, std::size_t> units;
    const Walks walks = walks_of(net, [&](std::span<const Unplaced> parameters) {
      std::vector<Placed> places = place_with_gaps(parameters);
      for (std::size_t i = 0; i < places.size(); ++i) {
        if (parameters[i].is_vector) continue;
        places[i].unit.reset();
        if (random.below(4) == 0) continue;
        places[i].unit = units[parameters[i].name] = random.below(5);
      }
      return places;
    });
    expect_around_readers(net, units, walks.forward);
    expect_around_readers(net, units, walks.backward);
    n_events += walks.forward.size() + walks.backward.size();
  }
  EXPECT_GT(n_events, 2'000u);
}

}  // namespace
}  // namespace lockstep::nn
