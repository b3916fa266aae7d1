#include "training/train/resume.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "checkpoint/folder.hpp"
#include "core/error.hpp"
#include "core/flags.hpp"
#include "io/digest.hpp"
#include "runtime/together.hpp"

namespace lockstep::training {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* flag = "--resume";

/// How far a run goes, what is told and kept of it, and by what it is computed and read: never what is learned.
constexpr std::array<std::string_view, 18> free_keys{
    "name",      "epochs",      "samples",  "max-steps",  "evaluate-every", "save-every",
    "val-split", "val-augment", "data",     "stage",      "cache",          "loader-threads",
    "threads",   "precision",   "strategy", "accumulate", "lanes",          "deterministic"};

struct Difference {
  std::string key, then, now;
};

std::vector<Difference> differences(const Json& then, const Json& now) {
  std::vector<Difference> all;
  const auto text = [](const Json& recipe, const std::string& key) {
    return recipe.contains(key) ? recipe.at(key).dump() : "not set";
  };
  const auto compare = [&](const Json& some) {
    for (const auto& [key, value] : some.items()) {
      const bool is_known = std::ranges::any_of(all, [&](const Difference& one) { return one.key == key; });
      if (is_known || std::ranges::find(free_keys, key) != free_keys.end()) continue;
      if (text(then, key) != text(now, key)) all.push_back({key, text(then, key), text(now, key)});
    }
  };
  compare(then);
  compare(now);
  return all;
}

}  // namespace

std::optional<checkpoint::Checkpoint> find_checkpoint(const runtime::Communicator& world, const RunOptions& options) {
  const bool is_auto = options.resume == "auto";
  if (options.resume == "never" || (is_auto && options.run_dir.empty())) return std::nullopt;
  std::vector<std::string> paths;  // on rank 0
  if (world.rank() == 0) paths = checkpoint::find_checkpoints(is_auto ? options.run_dir : options.resume);
  const bool is_one = !is_auto && world.rank() == 0 && checkpoint::is_checkpoint(options.resume);
  if (runtime::broadcast_value(world, is_one)) return checkpoint::open_checkpoint(world, options.resume);
  auto newest = checkpoint::open_first_whole(world, paths);
  if (newest || is_auto) return newest;
  core::fail_usage({.what = fmt::format("there is no whole checkpoint in '{}'", options.resume),
                    .where = flag,
                    .expected = "a run's folder, or a checkpoint in its folder checkpoints",
                    .fix = "name another, or start anew without --resume"});
}

std::string digest_of_set(const Recipe& recipe) {
  return recipe.synthetic ? "" : io::digest_of_file((fs::path{recipe.data} / "manifest.json").string());
}

std::string checkpoint_content(const Recipe& recipe, const std::string& set_digest, const RunState& state) {
  return Json{{"recipe_name", recipe.name},
              {"recipe", Json::parse(recipe_json(recipe))},
              {"set_digest", set_digest},
              {"state", Json::parse(to_json(state))}}
      .dump();
}

RunState resume_state(const checkpoint::Checkpoint& from, const Recipe& recipe, const std::string& set_digest,
                      bool is_anyway) try {
  const Json content = Json::parse(from.content());
  if (!is_anyway) {
    const auto other = differences(content.at("recipe"), Json::parse(recipe_json(recipe)));
    if (!other.empty())
      core::fail_usage({.what = fmt::format("checkpoint '{}' is of another recipe: {} was {}, and is {}{}", from.path(),
                                            other.front().key, other.front().then, other.front().now,
                                            other.size() == 1 ? "" : fmt::format("; {} more differ", other.size() - 1)),
                        .where = flag,
                        .expected = "the recipe and flags that the run was begun with",
                        .fix = "start it as before, or go on with other values by --resume-anyway"});
    if (content.at("set_digest") != set_digest)
      core::fail_usage({.what = fmt::format("checkpoint '{}' is of another set than '{}'", from.path(), recipe.data),
                        .where = flag,
                        .expected = fmt::format("a set whose manifest.json has digest {}, not {}",
                                                content.at("set_digest").get<std::string>(), set_digest),
                        .fix = "name the set that the run was begun with, or go on with this one by --resume-anyway"});
  }
  return parse_run_state(content.at("state").dump());
} catch (const Json::exception& error) {
  throw core::Error{
      core::ExitCode::failed,
      {.what = fmt::format("checkpoint '{}' is none of a training: {}", from.path(), error.what()), .where = flag}};
}

}  // namespace lockstep::training
