// Drawn recipes on GPUs that are made up: a run that stops after any step and is resumed on as many ranks has the bits
// of one that does not stop.
#include <filesystem>
#include <random>
#include <set>

#include "ranks/drawn_recipe.hpp"
#include "support/draws.hpp"
#include "support/train_on_made_up_gpus.hpp"

namespace lockstep::training {
namespace {

using support::Ended;
using support::world;

class Drawn : public support::OnMadeUpGpus {
  support::Variables gpus_{{{"LOCKSTEP_MADE_UP_GPUS", std::to_string(world().n_ranks())}}};
};

/// Collective. The first rank makes the sets.
support::DrawnRecipe drawn_together(std::uint64_t seed) {
  const auto draw = [&] { return support::draw_recipe(seed, ".", support::DrawFor::gpus); };
  support::DrawnRecipe recipe;
  if (world().rank() == 0) recipe = draw();
  world().barrier();
  if (world().rank() != 0) recipe = draw();
  return recipe;
}

Ended run(std::vector<std::string> arguments, const std::string& words) {
  for (std::string& word : support::words_of(words)) arguments.push_back(std::move(word));
  Ended ended = support::lockstep_line(arguments, world().n_ranks());
  support::expect_told(ended, 0, {});
  return ended;
}

/// Draws from `first` on. Returns what was set, as "precision f16".
std::set<std::string> expect_bits_of_the_whole(std::uint64_t first, std::uint64_t n_draws) {
  std::set<std::string> set;
  for (std::uint64_t seed = first; seed < first + n_draws; ++seed) {
    const support::DrawnRecipe recipe = drawn_together(seed);
    for (const auto& [key, value] : recipe.chosen) set.insert(key + " " + value);
    std::mt19937_64 random{seed};
    const std::uint64_t n_steps = 4 + random() % 4, stop = 1 + random() % (n_steps - 1);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", stopped after step " << stop << " of " << n_steps << ": "
                                    << recipe.text());
    const std::string length = "--max-steps " + std::to_string(n_steps) + " --run-dir ";
    const Ended whole = run(recipe.arguments, length + "whole");
    run(recipe.arguments, "--save-every=1 --max-steps " + std::to_string(stop) + " --run-dir part");
    const Ended rest = run(recipe.arguments, length + "part --resume auto");
    EXPECT_TRUE(support::has(rest.err, "resumed epoch ")) << rest.err;
    EXPECT_TRUE(support::has(support::files_here()["./whole/run.json"], R"("same_bits": "same_ranks")"));
    EXPECT_EQ(support::digest_of(rest), support::digest_of(whole));
    world().barrier();
    if (world().rank() == 0)
      for (const char* const folder : {"whole", "part"}) std::filesystem::remove_all(folder);
    world().barrier();
    if (testing::Test::HasFailure()) break;  // one is enough to look at
  }
  return set;
}

TEST_F(Drawn, RecipesGiveTheBitsOfTheWhole) {
  const std::uint64_t n_draws = support::number_of_draws(3);
  const std::set<std::string> set = expect_bits_of_the_whole(support::first_draw(6), n_draws);
  if (n_draws < 3) return;
  for (const support::DrawnKey& key : support::drawn_keys())
    for (const std::string& value : key.gpu_values)
      EXPECT_TRUE(key.key == "order" || set.contains(key.key + " " + value)) << key.key << " is never " << value;
}

TEST_F(Drawn, DISABLED_ManyRecipesGiveTheBitsOfTheWhole) { expect_bits_of_the_whole(100, 24); }

}  // namespace
}  // namespace lockstep::training
