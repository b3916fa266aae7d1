#include "training/recipe/find.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "core/flags.hpp"
#include "core/suggest.hpp"
#include "io/file.hpp"

namespace lockstep::training {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view extension = ".toml";
constexpr core::Bytes most_recipe{std::uint64_t{1} << 20};

std::vector<fs::path> recipe_folders() {
  std::vector<fs::path> folders;
  if (const char* const own = std::getenv("LOCKSTEP_RECIPES"); own != nullptr && *own != '\0') {
    if (std::error_code reason; !fs::is_directory(own, reason))
      core::fail_usage({.what = fmt::format("'{}' is not a folder", own),
                        .where = "LOCKSTEP_RECIPES",
                        .expected = "a folder of recipes, or nothing",
                        .fix = ""});
    folders.emplace_back(own);
  }
  std::error_code reason;
  const fs::path program = fs::read_symlink("/proc/self/exe", reason);
  if (!reason) folders.push_back(program.parent_path().parent_path() / "share" / "lockstep" / "recipes");
  folders.emplace_back(LOCKSTEP_SOURCE_RECIPES);
  return folders;
}

}  // namespace

std::vector<ShippedRecipe> list_recipes() {
  std::map<std::string, std::string> paths;
  for (const fs::path& folder : recipe_folders()) {
    std::error_code reason;
    for (const auto& entry : fs::directory_iterator{folder, reason})
      if (entry.path().extension() == extension) paths.emplace(entry.path().stem().string(), entry.path().string());
  }
  std::vector<ShippedRecipe> recipes;
  for (const auto& [name, path] : paths) recipes.push_back({name, path});
  return recipes;
}

std::string find_recipe(const std::string& word) {
  if (word.ends_with(extension)) return word;
  const std::vector<ShippedRecipe> recipes = list_recipes();
  const auto found = std::find_if(recipes.begin(), recipes.end(),
                                  [&word](const ShippedRecipe& recipe) { return recipe.name == word; });
  if (found != recipes.end()) return found->path;
  const std::vector<std::string> names = core::names_of(recipes);
  const auto near = core::near_miss(word, names);
  core::fail_usage({.what = fmt::format("unknown recipe '{}'", word),
                    .where = "lockstep train",
                    .expected = fmt::format("one of {}, or a file whose name ends in .toml", core::join(names)),
                    .fix = near ? fmt::format("did you mean '{}'?", *near) : ""});
}

std::string read_recipe(const std::string& path) { return io::read_text(path, most_recipe); }

std::string summary_of(const std::string& text) {
  const std::string_view line = std::string_view{text}.substr(0, text.find('\n'));
  if (!line.starts_with('#')) return "";
  return std::string{line.substr(std::min(line.find_first_not_of("# "), line.size()))};
}

}  // namespace lockstep::training
