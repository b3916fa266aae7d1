#include <gtest/gtest.h>

#include <algorithm>

#include "unit/nn_host/harness.hpp"

namespace lockstep::nn::host {
namespace {

/// Whether packing the parameters' logical values into an empty arena gives this one: padding is 0.
bool has_clean_padding(const Harness& harness, std::span<float> arena) {
  Arena again{arena.size()};
  const auto& parameters = harness.tested.network.parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    std::vector<float> logical(n_elements(parameters[i].shape));
    harness.executor.unpack(static_cast<int>(i), harness.rows(i), harness.slot(arena, i), logical);
    harness.executor.pack(static_cast<int>(i), harness.rows(i), logical, harness.slot(again.elements(), i));
  }
  return std::equal(arena.begin(), arena.end(), again.elements().begin());
}

TEST(HostParameters, ComeBackFromTheirSlotsAsTheyWere) {
  for (const std::uint64_t n_channels : {1u, 5u, 16u, 17u, 40u}) {
    Harness harness{make_case(image_network(n_channels), 2, Loss::cross_entropy)};
    const Network& network = harness.tested.network;
    for (std::size_t i = 0; i < network.parameters().size(); ++i) {
      const std::vector<double> exact = parameter_values(network, i);
      const std::vector<float> rounded(exact.begin(), exact.end());
      std::vector<float> back(rounded.size());
      harness.executor.unpack(static_cast<int>(i), harness.rows(i), harness.slot(harness.parameters.elements(), i),
                              back);
      EXPECT_EQ(back, rounded) << network.parameters()[i].name;
    }
    EXPECT_TRUE(has_clean_padding(harness, harness.parameters.elements()));
  }
}

TEST(HostParameters, KeepTheirPaddingThroughTraining) {
  for (const std::uint64_t n_channels : {3u, 10u, 17u}) {
    Harness harness{make_case(image_network(n_channels), 4, Loss::cross_entropy)};
    ASSERT_GT(harness.executor.arena_elements(), harness.tested.network.n_parameter_elements());
    double first_loss = 0, loss = 0;
    for (int step = 0; step < 5; ++step) {
      loss = harness.forward().loss;
      if (step == 0) first_loss = loss;
      harness.backward(0.002f);
      EXPECT_TRUE(has_clean_padding(harness, harness.gradients.elements()));
      const auto parameters = harness.parameters.elements(), gradients = harness.gradients.elements();
      for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i] -= gradients[i];
      EXPECT_TRUE(has_clean_padding(harness, harness.parameters.elements()));
    }
    EXPECT_LT(loss, first_loss);
  }
}

// A block has 16 of the 20 rows, so the last block has 12 rows of padding, and the slot some more.
TEST(ArenaSlot, RowsOfAPiece) {
  const ArenaSlot slot{.slice = {64, 2'000}, .block = 960, .block_rows = 16, .n_rows = 20};
  EXPECT_EQ(slot.rows_in({64, 960}), (core::Slice{0, 16}));
  EXPECT_EQ(slot.rows_in({64 + 960, 2'000 - 960}), (core::Slice{16, 4}));
  EXPECT_EQ(slot.rows_in(slot.slice), slot.all_rows());
}

TEST(HostParameters, AreCutIntoSlicesOfLogicalTensors) {
  int n_cut = 0;
  for (const std::uint64_t n_channels : {1u, 5u, 16u, 17u, 40u}) {
    const Harness harness{make_case(image_network(n_channels), 2, Loss::cross_entropy)};
    for (const ArenaSlot& slot : harness.executor.slots()) {
      const std::size_t n =
          n_elements(harness.tested.network.parameters()[static_cast<std::size_t>(slot.parameter)].shape);
      ASSERT_GT(slot.block, 0u);
      ASSERT_EQ(n % (slot.n_rows * slot.n_inner), 0u);
      for (std::size_t at = slot.block; at < slot.slice.count; at += slot.block) {
        EXPECT_TRUE(parts_rows(harness.executor, slot, n, at)) << slot.parameter << " at " << at;
        EXPECT_TRUE(parts_values(harness.executor, slot, n, at)) << slot.parameter << " at " << at;
        ++n_cut;
      }
    }
  }
  EXPECT_GT(n_cut, 100);
}

TEST(HostParameters, HaveSlotsFromTheLastNodeToTheFirst) {
  for (const Case& given : model_cases()) {
    const HostExecutor executor{given.network, {.max_batch = given.batch.n}};
    std::vector<int> expected, found;
    for (auto node = given.network.nodes().rbegin(); node != given.network.nodes().rend(); ++node)
      expected.insert(expected.end(), node->parameters.begin(), node->parameters.end());
    std::size_t end = 0;
    for (const ArenaSlot& slot : executor.slots()) {
      found.push_back(slot.parameter);
      EXPECT_EQ(slot.slice.offset, end);
      EXPECT_EQ(slot.slice.count % 16, 0u);
      EXPECT_GE(slot.slice.count,
                n_elements(given.network.parameters()[static_cast<std::size_t>(slot.parameter)].shape));
      end = slot.slice.end();
    }
    EXPECT_EQ(found, expected);
    EXPECT_EQ(end, executor.arena_elements());
  }
}

/// Whether all elements of the arena that belong to no slot are `value`.
bool has_gaps_of(float value, const Harness& harness, std::span<const float> arena) {
  std::size_t end = 0;
  const auto is_untouched = [&](std::size_t begin) {
    return std::ranges::count(arena.subspan(end, begin - end), value) == static_cast<std::ptrdiff_t>(begin - end);
  };
  for (const ArenaSlot& slot : harness.executor.slots()) {
    if (!is_untouched(slot.slice.offset)) return false;
    end = slot.slice.end();
  }
  return end == arena.size();
}

TEST(HostParameters, GiveTheSameBitsInAnyPlaces) {
  for (const char* name : {"mnist_cnn", "resnet18_cifar", "movielens"}) {
    const Case given = model_case(name);
    ExecutorOptions options = options_of(given);
    options.is_deterministic = true;
    Harness dense{given, options};
    options.place = place_with_gaps;
    Harness apart{given, options};
    ASSERT_FALSE(std::ranges::equal(apart.executor.slots(), dense.executor.slots(), {}, &ArenaSlot::parameter,
                                    &ArenaSlot::parameter));
    for (Harness* harness : {&dense, &apart}) {
      harness->forward();
      harness->backward();
      harness->forward();
      harness->backward(0.5f, true);
    }
    for (std::size_t i = 0; i < given.network.parameters().size(); ++i)
      EXPECT_EQ(apart.gradient(i), dense.gradient(i)) << given.network.parameters()[i].name;
    EXPECT_TRUE(has_gaps_of(7, apart, apart.gradients.elements())) << name;
  }
}

}  // namespace
}  // namespace lockstep::nn::host
