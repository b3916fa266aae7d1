#include "unit/nn/unit_turns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/error.hpp"
#include "nn/own_arenas.hpp"
#include "runtime/staging.hpp"

namespace lockstep::nn {
namespace {

using runtime::DeviceSpan;

/// Elements of a slot, which the test also writes.
struct TurnsSlot {
  DeviceSpan<float> parameters{}, gradients{};
  DeviceSpan<std::byte> weights{};
};

/// Memory for some elements, of each kind.
class TurnsMemory {
 public:
  TurnsMemory(std::size_t n, core::DType type)
      : of_weight_{type == core::DType::float32 ? 0 : core::size_of(type)},
        parameters_{core::Bytes{n * sizeof(float)}, runtime::Memory::device},
        gradients_{core::Bytes{n * sizeof(float)}, runtime::Memory::device},
        weights_{core::Bytes{n * of_weight_}, runtime::Memory::device} {}

  [[nodiscard]] TurnsSlot at(const core::Slice& slice) const {
    return {parameters_.on_device<float>().subspan(slice.offset, slice.count),
            gradients_.on_device<float>().subspan(slice.offset, slice.count),
            weights_.on_device<std::byte>().subspan(slice.offset * of_weight_, slice.count * of_weight_)};
  }

 private:
  std::size_t of_weight_;
  runtime::Buffer parameters_, gradients_, weights_;
};

template <class T>
std::vector<T> rounded_to(const std::vector<float>& values) {
  std::vector<T> rounded;
  for (const float value : values) rounded.emplace_back(value);
  return rounded;
}

template <class T>
void copy_values(runtime::Stream& stream, DeviceSpan<T> to, DeviceSpan<T> from) {
  if (to.size() > 0) stream.copy(runtime::as_writable_bytes(to), runtime::as_bytes(from));
}

template <class T>
void fill_with_nan(runtime::Stream& stream, DeviceSpan<T> to) {
  if (to.size() > 0) stream.fill(runtime::as_writable_bytes(to), std::byte{0xff});
}

/// Gives units their values, and takes their gradients.
class TurnsHooks final : public Hooks {
 public:
  TogetherInPass together{};
  std::size_t n_turns = 0;

  struct OfSlot {
    std::optional<std::size_t> unit{};
    TurnsSlot whole{};  ///< in the arenas
    TurnsSlot here{};   ///< where passes find it
  };
  std::vector<OfSlot> slots{};
  std::map<std::size_t, std::size_t> place_of{};  ///< of the parameters of units in the pool

  void begin(Pass pass, runtime::Stream& stream) {
    core::require(alive_.empty(), "each unit that was needed is done");
    pass_ = pass;
    stream_ = &stream;
  }

 private:
  struct Alive {
    bool is_done = false;
    std::size_t n_to_come = 0;  ///< slots that are not ready
  };

  [[nodiscard]] bool is_backward() const { return pass_ == Pass::backward || pass_ == Pass::backward_adding; }
  [[nodiscard]] bool is_in_pool(std::size_t unit) const { return place_of.count(unit) > 0; }

  template <class F>
  void for_slots(std::size_t unit, const F& f) {
    for (const OfSlot& slot : slots)
      if (slot.unit == unit) f(slot);
  }

  void need(std::size_t unit, runtime::Stream& stream) override {
    for (const auto& [other, alive] : alive_) {
      if (!alive.is_done) together.parameters.insert(std::minmax(unit, other));
      if (alive.n_to_come > 0) together.gradients.insert(std::minmax(unit, other));
    }
    Alive& alive = alive_[unit];
    for_slots(unit, [&](const OfSlot& /*slot*/) { alive.n_to_come += is_backward() ? 1 : 0; });
    if (!is_in_pool(unit)) return;
    const auto [last, is_first] = last_in_.try_emplace(place_of.at(unit), unit);
    if (std::exchange(last->second, unit) != unit) ++n_turns;
    for_slots(unit, [&](const OfSlot& slot) {
      copy_values(stream, slot.here.parameters, slot.whole.parameters);
      copy_values(stream, slot.here.weights, slot.whole.weights);
      if (pass_ == Pass::backward_adding) copy_values(stream, slot.here.gradients, slot.whole.gradients);
    });
  }

  void done(std::size_t unit, runtime::Stream& stream) override {
    alive_.at(unit).is_done = true;
    end_if_done(unit);
    if (!is_in_pool(unit)) return;
    for_slots(unit, [&](const OfSlot& slot) {
      fill_with_nan(stream, slot.here.parameters);
      fill_with_nan(stream, slot.here.weights);
    });
  }

  void ready(std::size_t number) override {
    const OfSlot& slot = slots.at(number);
    if (!slot.unit) return;
    --alive_.at(*slot.unit).n_to_come;
    end_if_done(*slot.unit);
    if (!is_in_pool(*slot.unit)) return;
    copy_values(*stream_, slot.whole.gradients, slot.here.gradients);
    fill_with_nan(*stream_, slot.here.gradients);
  }

  void end_if_done(std::size_t unit) {
    if (alive_.at(unit).is_done && alive_.at(unit).n_to_come == 0) alive_.erase(unit);
  }

  void touched(std::size_t, std::span<const std::uint64_t>) override {}
  void sum(DeviceSpan<double>, runtime::Stream&) override {}

  Pass pass_ = Pass::evaluation;
  runtime::Stream* stream_ = nullptr;
  std::map<std::size_t, Alive> alive_{};
  std::map<std::size_t, std::size_t> last_in_{};  ///< of places: the last unit
};

/// An executor, its memory, and the passes that it is given.
class TurnsPasses {
 public:
  /// `together` is null: with whole arenas.
  TurnsPasses(const MakeExecutor& make, const Case& given, const ExecutorOptions& options,
              const TogetherInPass* together, std::size_t n_places)
      : given_{given}, executor_{make(given.network, noting_units(options))}, type_{executor_->weights_type()} {
    whole_.emplace(executor_->arena_elements(), type_);
    send_parameters();
    for (const ArenaSlot& slot : executor_->slots()) {
      const auto unit = unit_at_.find(slot.slice.offset);
      hooks_.slots.push_back({.whole = whole_->at(slot.slice), .here = whole_->at(slot.slice)});
      if (unit != unit_at_.end()) hooks_.slots.back().unit = unit->second;
    }
    if (together != nullptr) move_to_pool(*together, n_places);
    std::vector<SlotPlace> places;
    for (const TurnsHooks::OfSlot& slot : hooks_.slots)
      places.push_back({slot.here.parameters, slot.here.gradients, slot.here.weights});
    executor_->bind(places);
    for (const TurnsHooks::OfSlot& slot : hooks_.slots) {
      if (!slot.unit || together == nullptr) continue;
      fill_with_nan(stream_, slot.here.parameters);
      fill_with_nan(stream_, slot.here.gradients);
      fill_with_nan(stream_, slot.here.weights);
    }
  }

  TurnsOutcome run() {
    const std::vector<float> x{given_.batch.x.begin(), given_.batch.x.end()};
    const std::vector<float> targets{given_.batch.targets.begin(), given_.batch.targets.end()};
    std::vector<std::uint64_t> ids;
    for (std::uint64_t i = 0; i < given_.batch.n; ++i) ids.push_back(100 + i);
    const data::Batch batch{
        .n = given_.batch.n,
        .x = given_.batch.ids.empty() ? std::as_bytes(std::span{x}) : std::as_bytes(std::span{given_.batch.ids}),
        .y = targets.empty() ? std::as_bytes(std::span{given_.batch.classes}) : std::as_bytes(std::span{targets}),
        .ids = ids};
    const data::Batch none = batch.part(0, 0);
    step({{batch, Pass::backward}, {batch, Pass::backward_adding}, {none, Pass::backward_adding}});
    pass(batch, Pass::evaluation);
    step({{none, Pass::backward}, {batch, Pass::backward_adding}});
    pass(none, Pass::evaluation);
    step({{none, Pass::backward}});
    return {std::move(results_), std::move(hooks_.together), hooks_.n_turns};
  }

 private:
  /// The options, with a note of the unit of each place.
  ExecutorOptions noting_units(ExecutorOptions options) {
    options.place = [this, place = options.place](std::span<const Unplaced> parameters) {
      std::vector<Placed> places = place(parameters);
      for (const Placed& one : places)
        if (one.unit) unit_at_[one.slice.offset] = *one.unit;
      return places;
    };
    return options;
  }

  void send_parameters() {
    std::vector<float> arena(executor_->arena_elements());
    const core::Slice all{0, arena.size()};
    for (const ArenaSlot& slot : executor_->slots()) {
      const std::vector<double> exact = parameter_values(given_.network, static_cast<std::size_t>(slot.parameter));
      const std::vector<float> values(exact.begin(), exact.end());
      executor_->pack(slot.parameter, slot.all_rows(), values, slot.slice.of(std::span{arena}));
    }
    const auto send = [&](const auto& values, DeviceSpan<std::byte> to) {
      staging_.send(std::as_bytes(std::span{values}), to);
    };
    send(arena, runtime::as_writable_bytes(whole_->at(all).parameters));
    if (type_ == core::DType::bfloat16) send(rounded_to<core::bfloat16>(arena), whole_->at(all).weights);
    if (type_ == core::DType::float16) send(rounded_to<core::float16>(arena), whole_->at(all).weights);
  }

  using PlaceOf = std::map<std::size_t, std::size_t>;  ///< by unit

  [[nodiscard]] PlaceOf share_places(const UnitPairs& together, std::size_t n_places) const {
    std::set<std::size_t> units;
    for (const auto& [offset, unit] : unit_at_) units.insert(unit);
    PlaceOf place_of;
    std::size_t n_own = 0;
    for (const std::size_t unit : units) {
      const bool is_free = std::ranges::none_of(place_of, [&](const auto& other) {
        return other.second == unit % n_places && together.count(std::minmax(unit, other.first)) > 0;
      });
      place_of[unit] = is_free ? unit % n_places : n_places + n_own++;
    }
    return place_of;
  }

  /// Makes memory for the largest unit of each place. Calls use(slot, at) with what each slot in a unit has of it.
  template <class Use>
  void make_pool(const PlaceOf& place_of, std::map<std::size_t, TurnsMemory>& pool, const Use& use) {
    std::map<std::size_t, std::size_t> n_of_unit, n_of_place;  // elements
    for (const TurnsHooks::OfSlot& slot : hooks_.slots)
      if (slot.unit) n_of_unit[*slot.unit] += slot.whole.parameters.size();
    for (const auto& [unit, place] : place_of) n_of_place[place] = std::max(n_of_place[place], n_of_unit[unit]);
    for (const auto& [place, n] : n_of_place) pool.emplace(place, TurnsMemory{n, type_});
    n_of_unit.clear();
    for (TurnsHooks::OfSlot& slot : hooks_.slots) {
      if (!slot.unit) continue;
      const std::size_t begin = n_of_unit[*slot.unit], n = slot.whole.parameters.size();
      use(slot, pool.at(place_of.at(*slot.unit)).at({begin, n}));
      n_of_unit[*slot.unit] += n;
    }
  }

  void move_to_pool(const TogetherInPass& together, std::size_t n_places) {
    hooks_.place_of = share_places(together.parameters, n_places);
    make_pool(hooks_.place_of, parameters_pool_, [](TurnsHooks::OfSlot& slot, const TurnsSlot& at) {
      slot.here.parameters = at.parameters;
      slot.here.weights = at.weights;
    });
    make_pool(share_places(together.gradients, n_places), gradients_pool_,
              [](TurnsHooks::OfSlot& slot, const TurnsSlot& at) { slot.here.gradients = at.gradients; });
  }

  void pass(const data::Batch& batch, Pass pass) {
    hooks_.begin(pass, stream_);
    executor_->enqueue(batch, pass, {.sample_weight = 0.5F, .epoch = 3}, hooks_, stream_);
    if (pass == Pass::backward || pass == Pass::backward_adding) return note_gradients();
    results_.losses.push_back(executor_->sums().loss);
    // Without hooks there are no parameters in a pool, which an executor sees only if units share places.
    if (const Inspection* const inspection = executor_->inspection(); pass == Pass::forward && inspection != nullptr)
      if (parameters_pool_.size() < hooks_.place_of.size() || hooks_.place_of.empty())
        results_.not_finite += inspection->find_not_finite();
  }

  struct TurnsPart {
    const data::Batch& batch;
    Pass backward;
  };
  void step(std::initializer_list<TurnsPart> parts) {
    for (const auto& [batch, backward] : parts) {
      pass(batch, Pass::forward);
      pass(batch, backward);
    }
  }

  void note_gradients() {
    stream_.wait();
    for (const ArenaSlot& slot : executor_->slots()) {
      std::vector<float> elements(slot.slice.count);
      staging_.fetch(runtime::as_bytes(whole_->at(slot.slice).gradients), std::as_writable_bytes(std::span{elements}));
      std::vector<float> logical(
          n_elements(given_.network.parameters()[static_cast<std::size_t>(slot.parameter)].shape));
      executor_->unpack(slot.parameter, slot.all_rows(), elements, logical);
      results_.gradients.push_back(std::move(logical));
    }
  }

  const Case& given_;
  std::map<std::size_t, std::size_t> unit_at_{};  ///< by offset in the arenas
  std::unique_ptr<Executor> executor_;
  core::DType type_;
  runtime::Staging staging_{core::Bytes{1U << 16}};
  std::optional<TurnsMemory> whole_{};
  std::map<std::size_t, TurnsMemory> parameters_pool_{}, gradients_pool_{};
  TurnsHooks hooks_{};
  runtime::Stream stream_{};
  PassResults results_{};
};

}  // namespace

TurnsOutcome pass_in_arenas(const MakeExecutor& make, const Case& given, const ExecutorOptions& options) {
  return TurnsPasses{make, given, options, nullptr, 0}.run();
}

TurnsOutcome pass_in_pool(const MakeExecutor& make, const Case& given, const ExecutorOptions& options,
                          const TogetherInPass& together, std::size_t n_places) {
  return TurnsPasses{make, given, options, &together, n_places}.run();
}

Network drawn_network(core::Random& random) {
  Network net;
  const Value wte = net.embedding("wte", net.ids(2), {.n_rows = 8, .width = 8, .column = std::nullopt});
  const auto append_layers = [&](Value x, const std::string& name) {
    Value y = x;
    for (std::uint64_t i = 0, n = 1 + random.below(3); i < n; ++i) {
      const Value weight_of = random.below(8) == 0 ? wte : Value{};
      y = net.linear(fmt::format("{}fc{}", name, i), y, {.n_out = 8, .has_bias = random.below(2) == 0}, weight_of);
      if (random.below(3) == 0) y = net.append(fmt::format("{}ln{}", name, i), LayerNorm{}, {y});
      if (random.below(3) == 0) y = net.relu(y);
    }
    return random.below(2) == 0 ? net.add(x, y) : y;
  };
  Value x = wte;
  for (std::uint64_t i = 0, n = random.below(6); i < n; ++i) {
    if (random.below(2) == 0) {
      x = append_layers(x, fmt::format("layer{}_", i));
    } else {
      const NameScope scope = net.unit(fmt::format("h.{}", i));
      x = append_layers(x, "");
    }
  }
  if (random.below(2) == 0) net.linear("head", x, {.n_out = 8, .has_bias = false}, wte);
  return net;
}

Case drawn_case(std::uint64_t seed) {
  core::Random random{seed};
  Case drawn{fmt::format("network {}", seed), drawn_network(random)};
  drawn.batch.n = 1 + random.below(3);
  for (std::uint64_t i = 0; i < 2 * drawn.batch.n; ++i) {
    drawn.batch.ids.push_back(static_cast<std::int64_t>(random.below(8)));
    drawn.batch.classes.push_back(static_cast<std::int64_t>(random.below(8)));
  }
  return drawn;
}

PlaceParameters drawn_units(std::uint64_t seed) {
  return [seed](std::span<const Unplaced> parameters) {
    std::vector<Placed> places = place_with_gaps(parameters);
    core::Random random{seed, 1};
    if (random.below(2) == 0) return places;
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (parameters[i].is_vector) continue;
      places[i].unit.reset();
      if (random.below(4) > 0) places[i].unit = random.below(5);
    }
    return places;
  };
}

}  // namespace lockstep::nn
