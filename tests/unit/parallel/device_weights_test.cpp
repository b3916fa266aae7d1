// The 16-bit weights of devices: whatever writes parameters writes them, too, with the bits of rounding once.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "comm/transport_threads.hpp"
#include "core/rng.hpp"
#include "parallel/device_synchronizer.hpp"
#include "support/recorder.hpp"
#include "unit/parallel/ranks.hpp"

namespace lockstep::parallel {
namespace {

using core::DType;
using support::Nodes;

/// One of two pieces, one of none, and padding as in a device's layout.
std::vector<Slot> padded_slots() {
  std::vector<Slot> slots = support::make_slots({10, 8'300, 0, 257, 1});
  for (Slot& slot : slots) slot.slice.count = (slot.slice.count + 15) / 16 * 16;
  return slots;
}

constexpr std::size_t flipped_slot = 1;

/// One rank, and all that writes its parameters. Collective, except flip().
class WritingRank {
 public:
  WritingRank(comm::Transport& world, comm::DeviceGroup* devices, const SynchronizerOptions& options)
      : world_{world}, type_{options.weights}, synchronizer_{world, devices, slots_, options} {
    const float between = type_ == DType::bfloat16 ? 1 + 0x1p-8F : 1 + 0x1p-11F;
    support::set_parameters(synchronizer_, [&](std::size_t i) {
      return i == slots_[flipped_slot].slice.offset ? between : support::odd_value(i, 0, 77);
    });
    synchronizer_.start({});
  }

  void step() { step(0); }
  void step_clipped() { step(0.5); }
  /// Skipped, and without scaling of the loss the last one before load().
  void step_not_finite() { step(0, std::numeric_limits<float>::infinity()); }
  void step_recorded() {
    if (!synchronizer_.can_be_recorded()) return step();
    send_gradients(0);
    synchronizer_.send(numbers(), stream_);
    const runtime::Recording recording = stream_.record([&] { synchronizer_.enqueue_sent(0, stream_); });
    stream_.replay(recording);
    synchronizer_.end_step(stream_);
    stream_.wait();
  }
  /// Flips a bit of an element half between two numbers of 16 bits, which is then rounded to the other one.
  void flip() { EXPECT_TRUE(synchronizer_.flip_bit(flipped_slot)); }
  /// As a run resumes, or goes back after it diverged.
  void load() {
    synchronizer_.visit(Access::kept, [&](const StoredPiece& piece) {
      for (std::size_t i = 0; i < piece.values.size(); ++i)
        piece.values[i] = std::abs(support::odd_value(i + n_steps_, 0, 3));
    });
    synchronizer_.start({.n_steps = n_steps_});
  }

  [[nodiscard]] std::vector<std::uint16_t> weights() { return fetched<std::uint16_t>(synchronizer_.arenas().weights); }
  [[nodiscard]] std::vector<std::uint16_t> rounded_parameters() {
    std::vector<std::uint16_t> rounded;
    for (const float value : fetched<float>(runtime::as_bytes(synchronizer_.arenas().parameters)))
      rounded.push_back(type_ == DType::bfloat16 ? core::bfloat16{value}.bits : core::float16{value}.bits);
    return rounded;
  }

 private:
  template <class T>
  [[nodiscard]] std::vector<T> fetched(runtime::DeviceSpan<const std::byte> from) {
    std::vector<T> values(from.size() / sizeof(T));
    staging_.fetch(from, std::as_writable_bytes(std::span{values}));
    return values;
  }
  [[nodiscard]] core::StepNumbers numbers() const { return {.learning_rate = 0.25, .scale = 4, .step = n_steps_}; }
  void send_gradients(float at_first_element) {
    ++n_steps_;
    std::vector<float> gradients(arena_elements(slots_));
    const auto scale = synchronizer_.scale_to_save();  // none in bf16, where step numbers alone scale
    const float factor = scale ? scale->value : 1;
    support::fill(slots_, gradients,
                  [&](auto i) { return factor * support::odd_value(i, world_.rank(), static_cast<int>(n_steps_)); });
    if (world_.rank() == world_.n_ranks() - 1) gradients[0] += at_first_element;
    staging_.send(std::as_bytes(std::span{gradients}), runtime::as_writable_bytes(synchronizer_.arenas().gradients));
  }
  void step(double clip_norm, float at_first_element = 0) {
    send_gradients(at_first_element);
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) synchronizer_.ready(slot, stream_);
    synchronizer_.step(numbers(), clip_norm, stream_);
    stream_.wait();
  }

  comm::Transport& world_;
  DType type_;
  std::vector<Slot> slots_ = padded_slots();
  DeviceSynchronizer synchronizer_;
  runtime::Staging staging_{};
  runtime::Stream stream_{};
  std::uint64_t n_steps_ = 0;
};

struct Writer {
  const char* name;
  void (WritingRank::*write)();
  bool moves = true;  ///< weights, if it comes first
};

const std::vector<Writer> writers{
    {"a step", &WritingRank::step},
    {"a clipped step", &WritingRank::step_clipped},
    {"a recorded step", &WritingRank::step_recorded},
    {"a step that is not finite", &WritingRank::step_not_finite, false},
    {"a flip", &WritingRank::flip},
    {"a load", &WritingRank::load},
};

class DeviceWeights : public testing::TestWithParam<Nodes> {
 protected:
  /// For all optimizers and types.
  template <class Work>
  static void as_ranks(const Work& work) {
    for (const optim::OptimizerKind kind : optim::all_optimizer_kinds)
      for (const DType type : {DType::bfloat16, DType::float16}) {
        SCOPED_TRACE(std::string{optim::name(kind)} + " " + std::string{core::name(type)});
        test::Recorder recorder;
        const test::UseRecorder use{recorder};
        comm::run_as_threads(GetParam(), [&](comm::Transport& world) {
          const auto devices = world.n_ranks() > 1 ? comm::make_staged(world) : nullptr;
          work([&] {
            return WritingRank{world, devices.get(),
                               SynchronizerOptions{.optimizer = optim::default_spec(kind),
                                                   .guard_interval = 0,
                                                   .scales_loss = type == DType::float16,
                                                   .weights = type}};
          });
        });
        for (const std::string& complaint : recorder.complaints()) ADD_FAILURE() << complaint;
      }
  }
};

TEST_P(DeviceWeights, FollowEachWriter) {
  as_ranks([](const auto& make_rank) {
    for (const Writer& writer : writers) {
      WritingRank rank = make_rank();
      const std::vector<std::uint16_t> before = rank.weights();
      EXPECT_TRUE(before == rank.rounded_parameters()) << "after initialization";
      (rank.*writer.write)();
      EXPECT_TRUE(rank.weights() == rank.rounded_parameters()) << "after " << writer.name;
      EXPECT_EQ(rank.weights() != before, writer.moves) << writer.name;
    }
  });
}

TEST_P(DeviceWeights, FollowWritersInAnyOrder) {
  as_ranks([](const auto& make_rank) {
    WritingRank rank = make_rank();
    core::Random random{41};  // the same on all ranks
    for (int i = 0; i < 25; ++i) {
      const Writer& writer = writers[random.below(writers.size())];
      (rank.*writer.write)();
      EXPECT_TRUE(rank.weights() == rank.rounded_parameters()) << "after " << writer.name << ", the writer " << i;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, DeviceWeights, testing::Values(Nodes{0}, Nodes{0, 0}));

}  // namespace
}  // namespace lockstep::parallel
