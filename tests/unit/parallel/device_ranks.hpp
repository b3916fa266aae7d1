// Ranks on devices that train with a strategy, for tests: the same slots and gradients on any number of ranks.
// Invariant: values depend on an element's place in its slot, not in the arena, which depends on the number of ranks.
// Used by tests/unit/parallel and tests/mpi.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "parallel/device_synchronizer.hpp"
#include "parallel/unit_plan.hpp"
#include "unit/parallel/ranks.hpp"

namespace lockstep::support {

using core::DType;
using optim::OptimizerKind;
using parallel::Access;
using parallel::Slot;
using parallel::Strategy;

/// By "state/slot", with padding.
using Tensors = std::map<std::string, std::vector<float>>;

struct Setting {
  Strategy strategy = Strategy::zero1;
  int n_ranks = 2;
  OptimizerKind optimizer = OptimizerKind::adam;
  double clip_norm = 0;
  DType weights = DType::float32;
  bool has_even_parts = true;
  int overflows_at = -1;  ///< a step whose gradient is not finite
  double learning_rate = 0.25;
  bool is_recorded = false;
  std::uint64_t guard_interval = 2;

  [[nodiscard]] std::string text() const {
    return fmt::format("{} on {} ranks, {}, clip {}, {}{}{}", name(strategy), n_ranks, optim::name(optimizer),
                       clip_norm, core::name(weights), has_even_parts ? "" : ", uneven parts",
                       overflows_at < 0 ? "" : fmt::format(", overflow at {}", overflows_at));
  }
};

/// Three units, of which a rank may have nothing, and vectors. Names are the same for all settings, places are not.
inline std::vector<Slot> slots_of(const Setting& setting) {
  const std::vector<parallel::UnitTensor> tensors{
      {"m0", "b2", 4'992},       {"m1", "b2", 1'344}, {"v0", "b2", 32, true}, {"m2", "b1", 9'008},
      {"v1", "b1", 2'064, true}, {"m3", "b0", 1'040}, {"v2", "b0", 16, true}};
  const parallel::UnitPlan plan = parallel::plan_units(
      tensors,
      {.least_elements = 1'000, .n_parts = setting.has_even_parts ? static_cast<std::size_t>(setting.n_ranks) : 1});
  std::vector<Slot> slots;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    slots.push_back({.name = tensors[i].name,
                     .slice = plan.places[i],
                     .decays = !tensors[i].is_vector,
                     .block = setting.has_even_parts || tensors[i].is_vector ? std::size_t{16} : 80});
  for (std::size_t unit = 0; unit < plan.units.size(); ++unit)
    for (const std::size_t i : plan.units[unit].tensors) slots[i].unit = unit;
  std::ranges::sort(slots, {}, [](const Slot& slot) { return slot.slice.offset; });
  return slots;
}

inline parallel::SynchronizerOptions options_of(const Setting& setting) {
  parallel::SynchronizerOptions options{.optimizer = optim::default_spec(setting.optimizer)};
  if (setting.optimizer == OptimizerKind::sgd) options.optimizer.momentum = 0.5;
  options.buckets = {{small_bucket_bytes}, {1'024}, {1'024}};
  options.guard_interval = setting.guard_interval;
  options.scales_loss = setting.weights == DType::float16;
  options.weights = setting.weights;
  return options;
}

/// Returns a number that an element of a slot has wherever the slot lies.
inline std::size_t key_of(const Slot& slot, std::size_t i) {
  return static_cast<std::size_t>(slot.name[0]) * 131 + static_cast<std::size_t>(slot.name[1]) * 100'003 + i;
}

/// As passes read a parameter of this slot.
inline float as_passes_read(const Setting& setting, const Slot& slot, float value) {
  if (setting.weights == DType::float32 || !slot.unit) return value;
  return setting.weights == DType::bfloat16 ? static_cast<float>(core::bfloat16{value})
                                            : static_cast<float>(core::float16{value});
}

class DeviceRank {
 public:
  /// Collective. `devices` may be null for one rank.
  DeviceRank(comm::Transport& world, const Setting& setting, std::unique_ptr<comm::DeviceGroup> devices)
      : setting_{setting},
        world_{world},
        devices_{std::move(devices)},
        synchronizer_{world, devices_.get(), slots_of(setting), options_of(setting), setting.strategy} {
    each(Access::own, [&](const Slot& slot, const parallel::StoredPiece& piece) {
      if (piece.state != "parameter") return;
      for (std::size_t i = 0; i < piece.values.size(); ++i)
        piece.values[i] = odd_value(key_of(slot, piece.slice.offset - slot.slice.offset + i), 0, 77);
    });
    synchronizer_.start({});
  }

  [[nodiscard]] parallel::DeviceSynchronizer& synchronizer() { return synchronizer_; }
  [[nodiscard]] std::span<const Slot> slots() const { return synchronizer_.sharding().slots(); }

  template <class F>
  void each(Access access, const F& f) {
    synchronizer_.visit(access, [&](const parallel::StoredPiece& piece) { f(slots()[piece.slot], piece); });
  }

  void step(int number) {
    std::vector<float> gradient(parallel::arena_elements(slots()));
    const auto scale = synchronizer_.scale_to_save();
    for (const Slot& slot : slots())
      for (std::size_t i = 0; i < slot.slice.count; ++i)
        gradient[slot.slice.offset + i] =
            (scale ? scale->value : 1) * small_integer(key_of(slot, i), world_.rank(), number);
    // On the last rank, in what the first one updates.
    if (number == setting_.overflows_at && world_.rank() == world_.n_ranks() - 1)
      gradient[0] = std::numeric_limits<float>::infinity();
    runtime::Staging{}.send(std::as_bytes(std::span{gradient}),
                            runtime::as_writable_bytes(synchronizer_.arenas().gradients));
    for (std::size_t slot = 0; slot < slots().size(); ++slot) synchronizer_.ready(slot, stream_);
    synchronizer_.step(
        {.learning_rate = setting_.learning_rate, .scale = 4, .step = static_cast<std::uint64_t>(number)},
        setting_.clip_norm, stream_);
    stream_.wait();
  }

  /// What passes read, as floats: of slots in units in the precision of weights.
  [[nodiscard]] Tensors read_by_passes() {
    Tensors found;
    const parallel::Arenas arenas = synchronizer_.arenas();
    for (const Slot& slot : slots()) {
      std::vector<float>& values = found["parameter/" + slot.name];
      values.resize(slot.slice.count);
      if (!slot.unit || setting_.weights == DType::float32) {
        runtime::Staging{}.fetch(runtime::as_bytes(arenas.parameters.subspan(slot.slice.offset, slot.slice.count)),
                                 std::as_writable_bytes(std::span{values}));
        continue;
      }
      std::vector<std::uint16_t> bits(slot.slice.count);
      runtime::Staging{}.fetch(arenas.weights.subspan(2 * slot.slice.offset, 2 * slot.slice.count),
                               std::as_writable_bytes(std::span{bits}));
      for (std::size_t i = 0; i < bits.size(); ++i) values[i] = value_of(bits[i]);
    }
    return found;
  }

 private:
  void enqueue(const core::StepNumbers& numbers) {
    for (std::size_t slot = 0; slot < slots().size(); ++slot) synchronizer_.ready(slot, stream_);
    synchronizer_.step(numbers, setting_.clip_norm, stream_);
  }
  /// The first step is recorded, all are replayed.
  void replay(const core::StepNumbers& numbers) {
    EXPECT_TRUE(synchronizer_.can_be_recorded());
    synchronizer_.send(numbers, stream_);
    if (!recording_)
      recording_ = stream_.record([&] {
        for (std::size_t slot = 0; slot < slots().size(); ++slot) synchronizer_.ready(slot, stream_);
        synchronizer_.enqueue_sent(setting_.clip_norm, stream_);
      });
    stream_.replay(*recording_);
    synchronizer_.end_step(stream_);
  }
  [[nodiscard]] float value_of(std::uint16_t bits) const {
    return setting_.weights == DType::bfloat16 ? static_cast<float>(core::bfloat16::from_bits(bits))
                                               : static_cast<float>(core::float16::from_bits(bits));
  }

  Setting setting_;
  comm::Transport& world_;
  std::unique_ptr<comm::DeviceGroup> devices_;
  parallel::DeviceSynchronizer synchronizer_;
  runtime::Stream stream_{};
  std::optional<runtime::Recording> recording_{};
};

/// All that ranks own, together: each element once.
class Collected {
 public:
  void add(DeviceRank& rank, Access access = Access::own) {
    const std::scoped_lock lock{mutex_};
    rank.each(access, [&](const Slot& slot, const parallel::StoredPiece& piece) {
      auto& values = tensors_[fmt::format("{}/{}", piece.state, slot.name)];
      values.resize(slot.slice.count, std::numeric_limits<float>::quiet_NaN());
      const std::span<float> to = piece.slice.seen_from(slot.slice.offset).of(std::span{values});
      EXPECT_TRUE(std::ranges::all_of(to, [](float value) { return std::isnan(value); })) << "twice: " << slot.name;
      std::ranges::copy(piece.values, to.begin());
    });
  }
  [[nodiscard]] const Tensors& all() const {
    for (const auto& [key, values] : tensors_)
      EXPECT_TRUE(std::ranges::none_of(values, [](float value) { return std::isnan(value); })) << "missing: " << key;
    return tensors_;
  }

 private:
  std::mutex mutex_;
  Tensors tensors_;
};

/// Sums of small integers are exact, so only norms depend on the order of sums.
inline double tolerance_of(const Setting& setting) {
  return setting.clip_norm > 0 || optim::needs_norms(setting.optimizer) ? 4 : 0;
}

inline void expect_within(double ulp, const Tensors& found, const Tensors& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [key, values] : expected) {
    ASSERT_EQ(found.at(key).size(), values.size()) << key;
    EXPECT_LE(distance_in_ulp(found.at(key), values), ulp) << key;
  }
}

}  // namespace lockstep::support
