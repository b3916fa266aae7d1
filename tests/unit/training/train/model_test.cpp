#include "training/train/model.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "nn/graph/models.hpp"
#include "nn/plan/pass_plan.hpp"
#include "parallel/slots.hpp"
#include "unit/training/recipe/fixture.hpp"

namespace lockstep::training {
namespace {

Recipe resnet_recipe(std::uint64_t batch, std::uint64_t bn_group, std::uint64_t accumulate = 1) {
  Recipe recipe;
  recipe.model = "resnet18";
  recipe.batch = batch;
  recipe.bn_group = bn_group;
  recipe.accumulate = accumulate;
  return recipe;
}

std::string refused_ranks(const Recipe& recipe, int n_ranks) {
  return refused([&] { check_ranks(recipe, n_ranks); });
}

TEST(RanksOfGroup, AreOneWhereAPartHoldsWholeGroups) {
  for (const std::uint64_t group : {1u, 2u, 4u, 8u}) EXPECT_EQ(ranks_of_group(resnet_recipe(32, group), 4), 1);
  EXPECT_EQ(ranks_of_group(resnet_recipe(32, 32), 1), 1);
  EXPECT_EQ(ranks_of_group(resnet_recipe(32, 2, 2), 4), 1);
  EXPECT_EQ(ranks_of_group(resnet_recipe(32, 0), 4), 1);
}

TEST(RanksOfGroup, AreAsManyAsHaveItsSamples) {
  EXPECT_EQ(ranks_of_group(resnet_recipe(32, 16), 4), 2);
  EXPECT_EQ(ranks_of_group(resnet_recipe(32, 32), 4), 4);
  EXPECT_EQ(ranks_of_group(resnet_recipe(48, 24), 6), 3);
  EXPECT_EQ(ranks_of_group(resnet_recipe(10, 10), 4), 4);  // 3, 3, 2 and 2 samples
  for (const std::uint64_t group : {16u, 32u}) EXPECT_NO_THROW(check_ranks(resnet_recipe(32, group), 4));
}

TEST(RanksOfGroup, HaveWholePartsOnly) {
  EXPECT_TRUE(has(refused_ranks(resnet_recipe(24, 12), 3),
                  "groups of 12 samples do not divide each rank's part of a batch of 24"));
  EXPECT_TRUE(has(refused_ranks(resnet_recipe(24, 12), 3), "--batch 36"));
  EXPECT_NO_THROW(check_ranks(resnet_recipe(36, 12), 3));
  EXPECT_TRUE(has(refused_ranks(resnet_recipe(48, 32), 6),
                  "a divisor of 8, the samples that each of 6 ranks has at a time, or the samples "));
}

TEST(RanksOfGroup, HaveOnePartEach) {
  const std::string message = refused_ranks(resnet_recipe(32, 16, 2), 2);
  EXPECT_TRUE(has(message, "groups of 16 samples span parts of a batch that are computed one after another"))
      << message;
  EXPECT_TRUE(has(message, "a divisor of 8, the samples that each of 2 ranks has at a time")) << message;
  EXPECT_TRUE(has(message, "--batch 64, or --accumulate 1")) << message;
  EXPECT_NO_THROW(check_ranks(resnet_recipe(64, 16, 2), 2));
  EXPECT_NO_THROW(check_ranks(resnet_recipe(32, 16, 2), 1));
}

TEST(RanksOfGroup, HaveLanesOfTheirOwn) {
  Recipe recipe = resnet_recipe(32, 8);
  recipe.deterministic = true;
  recipe.lanes = 4;
  for (const int n_ranks : {1, 2, 4}) EXPECT_EQ(ranks_of_group(recipe, n_ranks), 1);
}

std::vector<std::uint64_t> begins_of(const Recipe& recipe, std::uint64_t n) {
  std::vector<std::uint64_t> begins;
  for (std::uint64_t part = 0; part <= recipe.accumulate; ++part) begins.push_back(begin_of_part(recipe, n, part));
  return begins;
}

TEST(Parts, BeginBetweenGroups) {
  using Begins = std::vector<std::uint64_t>;
  EXPECT_EQ(begins_of(resnet_recipe(64, 8, 4), 64), (Begins{0, 16, 32, 48, 64}));
  EXPECT_EQ(begins_of(resnet_recipe(64, 8, 4), 32), (Begins{0, 8, 16, 24, 32}));
  EXPECT_EQ(begins_of(resnet_recipe(64, 8, 4), 19), (Begins{0, 0, 8, 16, 19}));
  EXPECT_EQ(begins_of(resnet_recipe(64, 8, 4), 0), (Begins{0, 0, 0, 0, 0}));
  EXPECT_EQ(begins_of(resnet_recipe(64, 32), 19), (Begins{0, 19}));
  EXPECT_EQ(begins_of(resnet_recipe(64, 0, 4), 19), (Begins{0, 4, 9, 14, 19}));
}

TEST(Parts, OfLanesAreEven) {
  Recipe recipe = resnet_recipe(64, 8, 2);
  recipe.deterministic = true;
  EXPECT_EQ(begins_of(recipe, 10), (std::vector<std::uint64_t>{0, 5, 10}));
}

TEST(Parts, FitIntoWhatGoesThroughAtATime) {
  EXPECT_EQ(samples_at_a_time(resnet_recipe(64, 8, 4), 64, 1), 16U);
  EXPECT_EQ(samples_at_a_time(resnet_recipe(64, 0, 4), 19, 1), 5U);
  EXPECT_EQ(samples_at_a_time(resnet_recipe(64, 32), 16, 4), 16U);
  for (const std::uint64_t accumulate : {1u, 2u, 4u}) {
    const Recipe recipe = resnet_recipe(64, 8, accumulate);
    for (std::uint64_t most = 1; most <= 64; ++most) {
      const std::uint64_t at_a_time = samples_at_a_time(recipe, most, 1);
      EXPECT_LE(at_a_time, std::max<std::uint64_t>(64 / accumulate, 8));
      for (std::uint64_t n = 0; n <= most; ++n) {
        const std::vector<std::uint64_t> begins = begins_of(recipe, n);
        EXPECT_EQ(begins.back(), n);
        for (std::size_t i = 1; i < begins.size(); ++i) ASSERT_LE(begins[i] - begins[i - 1], at_a_time) << n;
      }
    }
  }
}

/// Batch normalization of `side` x `side` pixels.
nn::Network network_of(std::uint64_t side) {
  nn::Network network;
  network.linear("fc", network.flatten(network.batch_norm("bn1", network.input({2, side, side}))), {.n_out = 2});
  return network;
}

void accept_groups(const Recipe& recipe, std::uint64_t n_samples, std::vector<int> n_ranks = {1, 2, 4}) {
  for (const int n : n_ranks)
    EXPECT_NO_THROW(check_groups(recipe, network_of(1), n_samples, n)) << n_samples << ", ranks " << n;
}

/// Refused on one of these numbers of ranks, and on all others with the same message.
std::string refused_groups(const Recipe& recipe, std::uint64_t n_samples, const std::vector<int>& n_ranks = {1, 2, 4}) {
  std::string message;
  for (const int n : n_ranks) {
    const std::string other = refused([&] { check_groups(recipe, network_of(1), n_samples, n); });
    EXPECT_TRUE(message.empty() || message == other) << message << other;
    message = other;
  }
  EXPECT_NO_THROW(check_groups(recipe, network_of(2), n_samples, n_ranks.front()));
  return message;
}

TEST(Groups, MayNotBeASinglePixelInTheLastBatch) {
  const std::string message = refused_groups(resnet_recipe(64, 16), 145);
  EXPECT_TRUE(has(message, "the last batch of an epoch has 17 instead of 64 samples")) << message;
  EXPECT_TRUE(has(message, "layer 'bn1' of 1x1 pixels (batch)")) << message;
  EXPECT_TRUE(has(message, "--drop-last, or another --batch")) << message;
  EXPECT_TRUE(has(refused_groups(resnet_recipe(64, 16), 65), "has 1 instead of 64"));
  EXPECT_FALSE(has(refused_groups(resnet_recipe(64, 16), 17), "--drop-last"));
  static_cast<void>(refused_groups(resnet_recipe(64, 8, 2), 81));
  for (const std::uint64_t n : {63u, 64u, 66u, 80u, 82u, 128u}) accept_groups(resnet_recipe(64, 16), n);
}

TEST(Groups, MayNotBeASinglePixelAtAll) {
  const std::string message = refused_groups(resnet_recipe(64, 1), 64);
  EXPECT_TRUE(has(message, "groups of 1 sample, in layer 'bn1' of 1x1 pixels (bn-group)")) << message;
}

TEST(Groups, OfSeveralRanksAreCountedTogether) {
  for (const std::uint64_t group : {16u, 32u}) {
    static_cast<void>(refused_groups(resnet_recipe(32, group), 33));
    accept_groups(resnet_recipe(32, group), 34);
  }
  static_cast<void>(refused_groups(resnet_recipe(32, 16), 32 + 17));
  accept_groups(resnet_recipe(32, 32), 32 + 17);
}

TEST(Groups, OfBatchesThatNeverComeDoNotMatter) {
  Recipe recipe = resnet_recipe(64, 16);
  recipe.drop_last = true;
  accept_groups(recipe, 145);
  recipe.drop_last = false;
  recipe.max_steps = 2;
  accept_groups(recipe, 145);
  recipe.max_steps = 3;
  static_cast<void>(refused_groups(recipe, 145));
  recipe.max_steps = 0;
  recipe.samples = 128;
  accept_groups(recipe, 145);
  recipe.samples = 129;
  static_cast<void>(refused_groups(recipe, 145));
}

TEST(Groups, AreThoseOfLanes) {
  Recipe recipe = resnet_recipe(32, 8);
  recipe.deterministic = true;
  recipe.lanes = 4;
  for (const std::uint64_t n : {33u, 36u, 37u}) static_cast<void>(refused_groups(recipe, n));
  for (const std::uint64_t n : {32u, 40u, 47u}) accept_groups(recipe, n);
  recipe.bn_group = 4;
  recipe.accumulate = 2;
  for (const std::uint64_t n : {36u, 40u, 44u}) static_cast<void>(refused_groups(recipe, n));
  accept_groups(recipe, 48);
}

TEST(Groups, AreThoseOfRanksInTheOrderOfTorch) {
  Recipe recipe = resnet_recipe(32, 8);
  recipe.order = data::Order::torch;
  static_cast<void>(refused_groups(recipe, 34, {2}));
  accept_groups(recipe, 34, {1});
  EXPECT_TRUE(has(refused_groups(recipe, 34, {4}), "has 4 instead of 32 samples"));  // padded to 36
}

/// The parameters of a network in the order of backward, with sizes as if nothing were padded but to slots.
std::vector<nn::Unplaced> unplaced_of(const nn::Network& network) {
  std::vector<nn::Unplaced> all;
  for (const auto& [parameter, node] : nn::plan_pass(network).parameters) {
    const nn::Shape& shape = network.parameters()[static_cast<std::size_t>(parameter)].shape;
    const std::size_t n = (nn::n_elements(shape) + nn::slot_multiple - 1) / nn::slot_multiple * nn::slot_multiple;
    all.push_back({.name = network.parameters()[static_cast<std::size_t>(parameter)].name,
                   .unit = network.nodes()[node].unit,
                   .n_elements = n,
                   .is_vector = shape.size() == 1});
  }
  return all;
}

// Blocks of every model are neighbours in the order of backward, so that each is one run of the arena.
TEST(PlaceInUnits, PutsMatricesOnBlocksOfSumsAndVectorsAtTheEnd) {
  std::size_t n_all_units = 0;
  for (const char* const name : {"mnist_cnn", "resnet18", "resnet50", "resnet152"}) {
    const std::vector<nn::Unplaced> parameters =
        unplaced_of(nn::make_model({.name = name, .input = {3, 64, 64}, .n_outputs = 10}));
    const std::vector<nn::Placed> places = place_in_units(parameters, {});
    ASSERT_EQ(places.size(), parameters.size()) << name;
    std::size_t end_of_matrices = 0, first_vector = SIZE_MAX, n_vectors = 0, n_units = 0;
    std::string block;
    for (std::size_t i = 0; i < places.size(); ++i) {
      const auto& [slice, unit] = places[i];
      EXPECT_EQ(slice.count, parameters[i].n_elements);
      EXPECT_EQ(unit.has_value(), !parameters[i].is_vector) << name;
      if (parameters[i].is_vector) {
        first_vector = std::min(first_vector, slice.offset);
        ++n_vectors;
        continue;
      }
      EXPECT_EQ(slice.offset % parallel::block_elements, 0u) << name;
      EXPECT_GE(slice.offset, end_of_matrices) << name << ": in the order of backward";
      end_of_matrices = slice.end();
      const bool is_new = unit == n_units;
      n_units += is_new ? 1 : 0;
      EXPECT_EQ(unit, n_units - 1) << name << ": units ascend";
      EXPECT_TRUE(!is_new || block.empty() || parameters[i].unit != block) << name << ": a block is not divided";
      block = parameters[i].unit;
    }
    n_all_units += n_units;
    EXPECT_GT(n_vectors, 0u) << name;
    EXPECT_GE(first_vector, end_of_matrices) << name;
  }
  EXPECT_GT(n_all_units, 50u);
}

// --unit-params: the order of sums follows from the places.
TEST(PlaceInUnits, MovesNothingWhenBlocksAreJoined) {
  const struct {
    std::size_t least, n_units;
  } rows[] = {{0, 10}, {1, 10}, {100'000, 7}, {1'000'000, 4}, {1'000'000'000, 1}};
  const std::vector<nn::Unplaced> parameters =
      unplaced_of(nn::make_model({.name = "resnet18", .input = {3, 64, 64}, .n_outputs = 10}));
  const std::vector<nn::Placed> alone = place_in_units(parameters, {.least_elements = 0});
  for (const auto& row : rows) {
    const std::vector<nn::Placed> places = place_in_units(parameters, {.least_elements = row.least});
    std::size_t n_units = 0;
    for (std::size_t i = 0; i < places.size(); ++i) {
      EXPECT_EQ(places[i].slice, alone[i].slice) << row.least;
      EXPECT_EQ(places[i].unit.has_value(), alone[i].unit.has_value()) << row.least;
      if (places[i].unit) n_units = std::max(n_units, *places[i].unit + 1);
    }
    EXPECT_EQ(n_units, row.n_units) << row.least;
  }
}

TEST(MakeNetwork, TakesPixelsWhereTheDataAre) {
  Recipe recipe;
  recipe.model = "mnist_cnn";
  DataInfo data;
  data.spec.classes.resize(10);
  data.input = {1, 28, 28};
  for (const bool are_pixels : {false, true}) {
    data.are_pixels = are_pixels;
    EXPECT_EQ(std::get<nn::Input>(make_network(recipe, data).nodes().front().layer).is_pixels, are_pixels);
  }
}

}  // namespace
}  // namespace lockstep::training
