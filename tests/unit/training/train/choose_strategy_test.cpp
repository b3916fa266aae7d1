#include "training/train/choose_strategy.hpp"

#include <array>
#include <limits>

#include "unit/training/recipe/fixture.hpp"
#include "unit/training/train/divided.hpp"

namespace lockstep::training {
namespace {

using parallel::Strategy;

/// Stands for a list of any length: the choice asks only what a strategy divides.
constexpr std::array two_strategies{Strategy::ddp, Strategy::zero1};
constexpr std::array three_strategies{Strategy::ddp, Strategy::zero1, Strategy::zero1};

struct ChoiceCase {
  std::vector<MemoryPlace> places{};
  bool sends_less = false;
  Strategy strategy = Strategy::ddp;
  std::string why{};
};

// A tenth of each room is kept back.
TEST(ChooseStrategy, TakesTheLeastShardingThatFitsEverywhere) {
  const ChoiceCase cases[] = {
      {{{"node a", 30 * gb, {27 * gb, 20 * gb}}}, false, Strategy::ddp, "it needs 27 GB of 27 GB on node a"},
      {{{"node a", 30 * gb, {27 * gb + 1, 20 * gb}}}, false, Strategy::zero1, "ddp needs 27 GB of 27 GB on node a"},
      {{{"node a", 40 * gb, {31 * gb, 20 * gb}}, {"node b", 30 * gb, {31 * gb, 20 * gb}}},
       false,
       Strategy::zero1,
       "ddp needs 31 GB of 27 GB on node b"},
      {{{"node a", 40 * gb, {20 * gb, 15 * gb}}, {"node b", 30 * gb, {20 * gb, 15 * gb}}},
       false,
       Strategy::ddp,
       "it needs 20 GB of 27 GB on node b"},
      {{{"node a", 40 * gb, {38 * gb, 15 * gb}}, {"node b", 30 * gb, {20 * gb, 15 * gb}}},
       false,
       Strategy::zero1,
       "ddp needs 38 GB of 36 GB on node a"},
      {{{"GPU a", 30 * gb, {20 * gb, 15 * gb}}},
       true,
       Strategy::zero1,
       "it sends less than ddp with 16-bit weights; it needs 15 GB of 27 GB on GPU a"},
      {{{"node a", 10 * gb, {31 * gb, 20 * gb}}},
       false,
       Strategy::zero1,
       "nothing leaves a tenth of the memory free: ddp needs 31 GB of 9 GB on node a; zero1 needs 20 GB of 9 GB on "
       "node a"},
      {{{"node a", 10 * gb, {20 * gb, 20 * gb}}},
       false,
       Strategy::ddp,
       "nothing leaves a tenth of the memory free: ddp needs 20 GB of 9 GB on node a; zero1 needs 20 GB of 9 GB on "
       "node a"},
      {{}, false, Strategy::ddp, "nothing is known of the memory that is left"},
  };
  for (const ChoiceCase& of : cases) {
    const StrategyChoice choice = choose_strategy(two_strategies, of.places, of.sends_less);
    EXPECT_EQ(choice.strategy, of.strategy) << of.why;
    EXPECT_EQ(choice.why, of.why);
  }
}

TEST(ChooseStrategy, TellsWhereEachOfThemLacksMemory) {
  const std::vector<MemoryPlace> places{{"node a", 30 * gb, {40 * gb, 20 * gb, 10 * gb}},
                                        {"node b", 20 * gb, {20 * gb, 20 * gb, 10 * gb}}};
  EXPECT_EQ(choose_strategy(three_strategies, places, false).why,
            "ddp needs 40 GB of 27 GB on node a; zero1 needs 20 GB of 18 GB on node b");
}

TEST(ChooseStrategy, PlacesOfARankHaveAllThatIsLimited) {
  constexpr std::uint64_t any = std::numeric_limits<std::uint64_t>::max();
  const Recipe recipe{.optimizer = {.kind = optim::OptimizerKind::adam}};
  const MemoryNeed need = with_strategy({.activations = 4 * gb, .arena = gb, .kept = divided(gb)}, recipe, 4, 2);
  const auto places = [&](const RankRoom& room) { return places_of(room, recipe, need, 4); };
  EXPECT_TRUE(places({.host = "a", .n_local = 2, .limits = {any, any}}).empty());
  const std::vector<MemoryPlace> all =
      places({.host = "a", .n_local = 2, .left = 60 * gb, .limits = {50 * gb, 40 * gb}, .shared_left = 30 * gb});
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0].where, "node a");
  EXPECT_EQ(all[0].room, 60 * gb);
  ASSERT_EQ(all[0].needs.size(), parallel::strategies_on(false).size());
  EXPECT_EQ(all[0].needs[0], 2 * (4 * gb + gb) + 3 * gb) << "two states of half of the parameters";
  EXPECT_EQ(all[0].needs[1], 2 * (4 * gb + gb / 2) + 3 * gb) << "a quarter";
  EXPECT_EQ(all[1].needs[0], 4 * gb + gb + 3 * gb);
  EXPECT_EQ(all[2].needs[0], 4 * gb + gb);
  EXPECT_EQ(all[3].needs[0], 3 * gb);
  EXPECT_EQ(places({.host = "a", .left = gb, .limits = {any, any}, .shared_left = gb}).size(), 1U)
      << "a rank that is alone shares nothing";
}

TEST(ChooseStrategy, SixteenBitsOnDevicesSendLessIfStatesAreDivided) {
  Recipe recipe{.precision = nn::Precision::bf16, .device = {.has_own_memory = true}};
  EXPECT_TRUE(sends_less_if_divided(recipe, 2));
  EXPECT_FALSE(sends_less_if_divided(recipe, 1));
  recipe.precision = nn::Precision::f32;
  EXPECT_FALSE(sends_less_if_divided(recipe, 2));
  recipe = {.precision = nn::Precision::bf16};
  EXPECT_FALSE(sends_less_if_divided(recipe, 2)) << "hosts have no 16-bit weights";
}

}  // namespace
}  // namespace lockstep::training
