#include "training/train/choose_strategy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>

#include "core/suggest.hpp"
#include "core/units.hpp"
#include "runtime/accelerator.hpp"
#include "runtime/memory.hpp"
#include "runtime/together.hpp"
#include "training/train/arena_slots.hpp"

namespace lockstep::training {
namespace {

std::uint64_t usable(const MemoryPlace& place) { return place.room - place.room / 10; }

/// What a strategy lacks at a place; negative if it fits.
double lack(const MemoryPlace& place, std::size_t strategy) {
  return static_cast<double>(place.needs[strategy]) - static_cast<double>(usable(place));
}

/// Where the strategy lacks most, or has least to spare.
const MemoryPlace& tightest(std::span<const MemoryPlace> places, std::size_t strategy) {
  return *std::ranges::max_element(places, {}, [&](const MemoryPlace& place) { return lack(place, strategy); });
}

std::string need_text(const MemoryPlace& place, std::size_t strategy) {
  return fmt::format("{} of {} on {}", core::format_decimal({place.needs[strategy]}),
                     core::format_decimal({usable(place)}), place.where);
}

/// Which strategy is tried when, by index.
std::vector<std::size_t> order_of(std::span<const Strategy> strategies, bool sends_less) {
  std::vector<std::size_t> order(strategies.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto divides = [&](std::size_t i) { return parallel::divides_states(strategies[i]); };
  const auto first = std::ranges::find_if(order, divides);
  if (sends_less && first != order.end()) std::rotate(order.begin(), first, first + 1);
  return order;
}

/// Host memory that ranks of a node share has a room of its own.
std::uint64_t shared_memory_left() {
  std::error_code error;
  const std::filesystem::space_info room = std::filesystem::space("/dev/shm", error);
  return !error && room.capacity > 0 ? room.available : 0;
}

std::string places_text(const std::vector<MemoryPlace>& places) {
  nlohmann::json all = nlohmann::json::array();
  for (const MemoryPlace& place : places) all.push_back({place.where, place.room, place.needs});
  return all.dump();
}

void add_places(std::vector<MemoryPlace>& places, const std::string& text) {
  for (const nlohmann::json& place : nlohmann::json::parse(text))
    places.push_back(
        {place[0].get<std::string>(), place[1].get<std::uint64_t>(), place[2].get<std::vector<std::uint64_t>>()});
}

}  // namespace

StrategyChoice choose_strategy(std::span<const Strategy> strategies, std::span<const MemoryPlace> places,
                               bool sends_less) {
  const std::vector<std::size_t> order = order_of(strategies, sends_less);
  if (places.empty()) return {strategies[order.front()], "nothing is known of the memory that is left"};
  std::vector<std::string> refused;
  for (const std::size_t i : order) {
    const MemoryPlace& place = tightest(places, i);
    if (lack(place, i) > 0) {
      refused.push_back(fmt::format("{} needs {}", name(strategies[i]), need_text(place, i)));
      continue;
    }
    if (!refused.empty()) return {strategies[i], core::join(refused, "; ")};
    return {strategies[i],
            fmt::format("{}it needs {}", order[0] != 0 ? "it sends less than ddp with 16-bit weights; " : "",
                        need_text(place, i))};
  }
  const std::size_t best =
      *std::ranges::min_element(order, {}, [&](std::size_t i) { return lack(tightest(places, i), i); });
  return {strategies[best], "nothing leaves a tenth of the memory free: " + core::join(refused, "; ")};
}

std::vector<MemoryPlace> places_of(const RankRoom& room, const Recipe& recipe, const MemoryNeed& need, int n_ranks) {
  std::vector<MemoryPlace> places;
  const bool has_own_memory = recipe.device.has_own_memory;
  const auto add_place = [&](std::string where, std::uint64_t bytes, auto needed) {
    if (bytes == 0 || bytes == std::numeric_limits<std::uint64_t>::max()) return;
    MemoryPlace& place = places.emplace_back(MemoryPlace{std::move(where), bytes});
    for (const Strategy strategy : parallel::strategies_on(has_own_memory)) {
      Recipe other = recipe;
      other.strategy = strategy;
      place.needs.push_back(needed(with_strategy(need, other, n_ranks, has_own_memory ? 1 : room.n_local)));
    }
  };
  const std::uint64_t n = room.n_local;
  if (has_own_memory) {
    add_place(fmt::format("{} of node {}", n > 1 ? "a shared GPU" : "a GPU", room.host), room.left,
              [n](const MemoryNeed& of) { return n * of.of_device(); });
    return places;
  }
  add_place(fmt::format("node {}", room.host), room.left, [n](const MemoryNeed& of) { return of.of_node(n); });
  add_place(fmt::format("node {} by ulimit -v", room.host), room.limits.address_space,
            [n](const MemoryNeed& of) { return of.own() + of.shared(n); });
  add_place(fmt::format("node {} by ulimit -d", room.host), room.limits.data,
            [](const MemoryNeed& of) { return of.own(); });
  if (n > 1)
    add_place(fmt::format("/dev/shm of node {}", room.host), room.shared_left,
              [n](const MemoryNeed& of) { return of.shared(n); });
  return places;
}

bool sends_less_if_divided(const Recipe& recipe, int n_ranks) noexcept {
  return recipe.device.has_own_memory && n_ranks > 1 && recipe.precision && *recipe.precision != nn::Precision::f32;
}

std::span<const parallel::Strategy> eligible_strategies(const Recipe& recipe, const nn::Network& network) {
  const std::span<const Strategy> all = parallel::strategies_on(recipe.device.has_own_memory);
  const auto divides = std::ranges::find_if(all, &parallel::divides_parameters);
  return has_large_tables(recipe, network) ? all.first(static_cast<std::size_t>(divides - all.begin())) : all;
}

StrategyChoice choose_strategy(const runtime::Communicator& world, const OpenDevice& place, const Recipe& recipe,
                               const nn::Network& network, std::uint64_t most) {
  const runtime::Place& me = place.topology.places[static_cast<std::size_t>(world.rank())];
  const bool has_own_memory = recipe.device.has_own_memory;
  const auto n_local =
      static_cast<std::uint64_t>(std::ranges::count(place.topology.places, me.node, &runtime::Place::node));
  std::string mine;
  runtime::together(world, [&] {
    const MemoryNeed need = memory_need(*place.device, recipe, network, most, world.n_ranks(), n_local);
    const RankRoom room{
        .host = me.host,
        .n_local = has_own_memory ? static_cast<std::uint64_t>(place.choice.n_sharing) : n_local,
        .left = (has_own_memory ? runtime::accelerator()->available() : runtime::available_memory()).value,
        .limits = runtime::limits_left(),
        .shared_left = shared_memory_left()};
    mine = places_text(places_of(room, recipe, need, world.n_ranks()));
  });
  std::vector<MemoryPlace> places;
  for (const std::string& text : world.gather(mine)) add_places(places, text);
  const auto strategies = eligible_strategies(recipe, network);
  StrategyChoice choice{strategies.front()};
  if (world.rank() == 0) choice = choose_strategy(strategies, places, sends_less_if_divided(recipe, world.n_ranks()));
  return {runtime::broadcast_value(world, choice.strategy), world.broadcast(choice.why)};
}

}  // namespace lockstep::training
