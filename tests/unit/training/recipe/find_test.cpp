#include "training/recipe/find.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "unit/io/temporary_folder.hpp"
#include "unit/training/recipe/fixture.hpp"

namespace lockstep::training {
namespace {

/// Sets LOCKSTEP_RECIPES during a test.
class OwnRecipes {
 public:
  explicit OwnRecipes(const std::string& folder) { setenv("LOCKSTEP_RECIPES", folder.c_str(), 1); }
  ~OwnRecipes() { unsetenv("LOCKSTEP_RECIPES"); }
  OwnRecipes(const OwnRecipes&) = delete;
  OwnRecipes& operator=(const OwnRecipes&) = delete;
};

void write(const std::string& path, const std::string& text) { std::ofstream{path} << text; }

TEST(RecipeFind, AnUnknownNameIsRefusedWithTheNamesThereAre) {
  const std::string message = refused([] { static_cast<void>(shipped({"mnist-cnn"})); });
  EXPECT_TRUE(has(message, "unknown recipe 'mnist-cnn'")) << message;
  EXPECT_TRUE(has(message, "cifar_resnet18, digits, mnist_cnn, movielens")) << message;
  EXPECT_TRUE(has(message, "did you mean 'mnist_cnn'?")) << message;
}

TEST(RecipeFind, ARecipeIsAskedFor) {
  EXPECT_TRUE(has(refused([] { static_cast<void>(shipped({"--batch", "3"})); }), "RECIPE is missing"));
}

TEST(RecipeFind, AFileIsTakenAsItIs) {
  const io::TemporaryFolder folder;
  const std::string path = folder.path() + "/mine.toml";
  write(path, "model = \"toy\"\nbatch = 7\n");
  const ResolvedRecipe r = shipped({path});
  EXPECT_EQ(r.recipe.batch, 7U);
  EXPECT_EQ(r.recipe.name, "mine");
  EXPECT_EQ(r.path, path);
  EXPECT_TRUE(has(refused([&] { static_cast<void>(shipped({folder.path() + "/other.toml"})); }), "other.toml"));
  EXPECT_TRUE(has(refused([&] { static_cast<void>(shipped({folder.path() + "/a\nb.toml"})); }), "a"));
}

TEST(RecipeFind, AFolderOfOnesOwnComesFirst) {
  const io::TemporaryFolder folder;
  write(folder.path() + "/site.toml", "# What we run here\nmodel = \"toy\"\n");
  write(folder.path() + "/toy.toml", "model = \"toy\"\nbatch = 9\n");
  write(folder.path() + "/notes.txt", "none");
  const OwnRecipes own{folder.path()};
  EXPECT_EQ(shipped({"site"}).recipe.name, "site");
  EXPECT_EQ(shipped({"toy"}).recipe.batch, 9U);
  EXPECT_EQ(shipped({"digits"}).recipe.model, "mnist_cnn");
  EXPECT_TRUE(has(recipe_help(), "site                   What we run here\n"));
  EXPECT_TRUE(has(refused([] { static_cast<void>(shipped({"notes"})); }), "unknown recipe"));
}

TEST(RecipeFind, AFolderThatIsNoneIsRefused) {
  const OwnRecipes own{"/no/such/folder"};
  EXPECT_TRUE(has(refused([] { static_cast<void>(shipped({"toy"})); }), "(LOCKSTEP_RECIPES)"));
}

}  // namespace
}  // namespace lockstep::training
