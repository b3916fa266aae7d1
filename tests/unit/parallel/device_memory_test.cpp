// What devices allocate, to the byte, and where it is.
#include "parallel/device_memory.hpp"

#include <gtest/gtest.h>

#include "optim/cuda/device_optimizer.hpp"
#include "support/recorder.hpp"
#include "unit/parallel/ranks.hpp"

namespace lockstep::parallel {
namespace {

using core::DType;
using runtime::DeviceSpan;

constexpr std::size_t n_matrix = 40 * 1'024, n_vector = 96;

/// Two units and a vector; every number of ranks up to 4 has equal parts, except 3.
std::vector<Slot> two_units() {
  std::vector<Slot> slots = support::make_slots({n_matrix / 4, n_matrix / 4, n_matrix / 2, n_vector});
  slots[0].unit = slots[1].unit = 0;
  slots[2].unit = 1;
  return slots;
}

DeviceDivision division_of(Strategy strategy, std::size_t n_ranks) {
  return {strategy, two_units(), {{64 * 1'024}, {1'024}, {1'024}}, n_ranks};
}

class DeviceMemoryOf : public testing::Test {
 protected:
  template <class Make>
  std::size_t bytes_of(const Make& make) {
    const std::size_t before = recorder_.n_bytes();
    const auto made = make();
    return recorder_.n_bytes() - before;
  }

  test::Recorder recorder_;
  test::UseRecorder use_{recorder_};
};

std::size_t in_arrays(std::size_t n_bytes) { return core::round_up(n_bytes, 512); }

// Gradients and what passes read are whole; float32 behind 16-bit weights is what the rank updates.
TEST_F(DeviceMemoryOf, IsTheFormula) {
  constexpr std::size_t n = n_matrix + n_vector, n_sums = 7;
  for (const DType weights : {DType::float32, DType::bfloat16, DType::float16}) {
    const std::size_t of_weight = core::size_of(weights);
    const bool is_16_bits = of_weight == 2;
    const auto bytes = [&](Strategy strategy, std::size_t n_ranks, std::size_t rank) {
      const DeviceDivision division = division_of(strategy, n_ranks);
      return bytes_of([&] { return DeviceMemory{division, rank, weights, n_sums, nullptr}; });
    };
    for (const std::size_t n_ranks : {1, 2, 3, 4}) {
      const std::size_t whole = n * (4 + 4 + (is_16_bits ? 2 : 0));
      std::size_t divided = 0;
      for (std::size_t rank = 0; rank < n_ranks; ++rank) {
        EXPECT_EQ(bytes(Strategy::ddp, n_ranks, rank), whole);
        divided += bytes(Strategy::zero1, n_ranks, rank);
      }
      const std::size_t of_rank = in_arrays(4 * n) + in_arrays(of_weight * n) + n_sums * sizeof(double);
      const std::size_t masters = is_16_bits ? 4 * (n_matrix + n_ranks * n_vector) : 0;
      EXPECT_EQ(divided, n_ranks == 1 ? whole : n_ranks * of_rank + masters) << core::name(weights) << n_ranks;
    }
  }
}

// SGD with momentum keeps one state.
TEST_F(DeviceMemoryOf, StatesAreThoseOfWhatARankUpdates) {
  for (const std::size_t n_ranks : {2, 3, 4}) {
    const DeviceDivision division = division_of(Strategy::zero1, n_ranks);
    std::size_t all = 0;
    for (std::size_t rank = 0; rank < n_ranks; ++rank) {
      const runtime::Buffer sums{{sizeof(double)}, runtime::Memory::device};
      const auto bytes = [&](double momentum) {
        optim::OptimizerSpec spec = optim::default_spec(optim::OptimizerKind::sgd);
        spec.momentum = momentum;
        std::vector<optim::cuda::Run> runs;
        for (const KeptSlice& kept : division.updated_by(rank)) runs.push_back({.n_elements = kept.slice.count});
        return bytes_of([&] {
          return optim::cuda::DeviceOptimizer{spec, {true, true, true, false}, runs, sums.on_device<double>()};
        });
      };
      EXPECT_EQ(bytes(0.9) - bytes(0), 4 * n_elements(division.updated_by(rank)));
      EXPECT_LE(n_elements(division.updated_by(rank)), count_kept(division, false).updated);
      all += n_elements(division.updated_by(rank));
    }
    EXPECT_EQ(all, n_matrix + n_ranks * n_vector);
    EXPECT_GE(n_ranks * count_kept(division, false).updated, all);
  }
}

TEST_F(DeviceMemoryOf, HasEachSliceAtOnePlace) {
  const DeviceDivision division = division_of(Strategy::zero1, 3);
  for (const DType weights : {DType::float32, DType::bfloat16})
    for (std::size_t rank = 0; rank < 3; ++rank) {
      const DeviceMemory memory{division, rank, weights, 1, nullptr};
      const core::Slice vector = two_units()[3].slice;
      EXPECT_EQ(memory.parameters(vector).data(), memory.parameters_of_passes().data() + vector.offset);
      std::size_t end = 0;
      for (const KeptSlice& kept : memory.updated()) {
        EXPECT_EQ(memory.place_of(kept.slice), (core::Slice{end, kept.slice.count}));
        EXPECT_EQ(memory.updated_in(kept.slice), kept.slice);
        end += kept.slice.count;
      }
      const core::Slice of_next = division.updated_by((rank + 1) % 3).front().slice;
      EXPECT_TRUE(memory.updated_in(of_next).empty());
      EXPECT_THROW(static_cast<void>(memory.place_of(of_next)), core::Error);
    }
}

}  // namespace
}  // namespace lockstep::parallel
