#include "nn/plan/parameter_slots.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/error.hpp"

namespace lockstep::nn {
namespace {

/// Backward completes c.weight, c.bias, b.weight, a.weight, a.bias.
Network network() {
  Network net;
  Value x = net.linear("a", net.input({8}), {.n_out = 8});
  {
    const NameScope outer = net.block("h");
    const NameScope inner = net.unit("0");
    x = net.linear("b", x, {.n_out = 8, .has_bias = false});
  }
  net.linear("c", x, {.n_out = 2});
  return net;
}

std::vector<ArenaSlot> slots_of(const PassPlan& plan) {
  std::vector<ArenaSlot> slots;
  for (std::size_t i = 0; i < plan.parameters.size(); ++i)
    slots.push_back({.parameter = plan.parameters[i].parameter, .slice = {.count = (i + 1) * slot_multiple}});
  return slots;
}

PlaceParameters at(std::vector<std::size_t> offsets) {
  return [offsets = std::move(offsets)](std::span<const Unplaced> parameters) {
    std::vector<Placed> places;
    for (std::size_t i = 0; i < parameters.size(); ++i)
      places.push_back({.slice = {offsets.at(i), parameters[i].n_elements}});
    return places;
  };
}

/// "name offset+count ..., then reported after each parameter of the plan: begin-end ...".
std::string text_of(const Network& net, const PassPlan& plan, const ParameterSlots& slots) {
  std::string text;
  for (const ArenaSlot& slot : slots.all()) {
    const auto parameter = static_cast<std::size_t>(slot.parameter);
    text += fmt::format("{} {}+{} ", net.parameters()[parameter].name, slot.slice.offset, slot.slice.count);
    EXPECT_EQ(&slots.all()[slots.number(slot.parameter)], &slot);
  }
  text += "|";
  for (std::size_t i = 0; i < plan.parameters.size(); ++i) {
    EXPECT_EQ(slots.of_planned(i).parameter, plan.parameters[i].parameter);
    const core::Slice reported = slots.reported_after({i, 1});
    text += fmt::format(" {}-{}", reported.offset, reported.end());
  }
  const core::Slice all = slots.reported_after({0, plan.parameters.size()});
  EXPECT_EQ(all, (core::Slice{0, slots.all().size()}));
  EXPECT_TRUE(slots.reported_after({plan.parameters.size(), 0}).empty());
  return text;
}

struct SlotsCase {
  const char* name;
  PlaceParameters place;
  const char* expected;
};

TEST(ParameterSlots, AreAscendingAndReportedInOrder) {
  const std::vector<SlotsCase> cases{
      {"one after another",
       {},
       "c.weight 0+16 c.bias 16+32 h.0.b.weight 48+48 a.weight 96+64 a.bias 160+80 | 0-1 1-2 2-3 3-4 4-5"},
      {"vectors last, with gaps", at({0, 512, 64, 128, 640}),
       "c.weight 0+16 h.0.b.weight 64+48 a.weight 128+64 c.bias 512+32 a.bias 640+80 | 0-1 1-1 1-2 2-4 4-5"},
      {"in reverse", at({400, 304, 208, 112, 0}),
       "a.bias 0+80 a.weight 112+64 h.0.b.weight 208+48 c.bias 304+32 c.weight 400+16 | 0-0 0-0 0-0 0-0 0-5"},
  };
  const Network net = network();
  const PassPlan plan = plan_pass(net);
  for (const SlotsCase& one : cases)
    EXPECT_EQ(text_of(net, plan, {net, plan, slots_of(plan), one.place}), one.expected) << one.name;
}

TEST(ParameterSlots, ArePlacedByUnitSizeAndDimensions) {
  const Network net = network();
  const PassPlan plan = plan_pass(net);
  std::string seen;
  const auto look = [&](std::span<const Unplaced> parameters) {
    for (const Unplaced& one : parameters)
      seen += fmt::format("{} '{}' {} {}; ", one.name, one.unit, one.n_elements, one.is_vector ? "vector" : "matrix");
    return at({0, 16, 48, 96, 160})(parameters);
  };
  const ParameterSlots slots{net, plan, slots_of(plan), look};
  EXPECT_EQ(seen,
            "c.weight '' 16 matrix; c.bias '' 32 vector; h.0.b.weight 'h.0' 48 matrix; a.weight '' 64 matrix; "
            "a.bias '' 80 vector; ");
  EXPECT_EQ(slots.n_elements(), 240u);
}

TEST(ParameterSlots, RefusePlacesThatAreNone) {
  const Network net = network();
  const PassPlan plan = plan_pass(net);
  const auto refused = [&](const PlaceParameters& place) {
    EXPECT_THROW((ParameterSlots{net, plan, slots_of(plan), place}), core::Error);
  };
  refused(at({0, 16, 32, 96, 160}));  // the third overlaps the second
  refused(at({0, 20, 64, 112, 176}));
  refused([](std::span<const Unplaced>) { return std::vector<Placed>{}; });
  refused([](std::span<const Unplaced> parameters) {
    std::vector<Placed> places = at({0, 16, 48, 96, 160})(parameters);
    places.back().slice.count += slot_multiple;
    return places;
  });
  refused([](std::span<const Unplaced> parameters) {
    std::vector<Placed> places = at({0, 16, 48, 96, 160})(parameters);
    places.back().unit = 0;  // a vector
    return places;
  });
}

}  // namespace
}  // namespace lockstep::nn
