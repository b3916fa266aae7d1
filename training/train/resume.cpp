#include "training/train/resume.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>
#include <string_view>
#include <vector>

#include "checkpoint/content.hpp"
#include "checkpoint/folder.hpp"
#include "core/error.hpp"
#include "core/flags.hpp"
#include "core/json.hpp"
#include "io/digest.hpp"
#include "runtime/together.hpp"
#include "training/recipe/specs.hpp"
#include "training/run/status.hpp"

namespace lockstep::training {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* resume_flag = "--resume";

/// Keys for the length of a run (if its rates do not depend on it), for its reports and records, and for the way it
/// computes and reads. They never change what is learned.
constexpr std::array<std::string_view, 21> free_keys{
    "name",        "epochs",      "samples",  "max-steps",  "evaluate-every", "save-every",    "val-split",
    "val-augment", "data",        "stage",    "cache",      "loader-threads", "threads",       "precision",
    "strategy",    "unit-params", "prefetch", "accumulate", "lanes",          "deterministic", "graph"};

/// Keys that determine which tensors exist: a checkpoint with other values cannot be read, even with --resume-anyway.
constexpr std::array<std::string_view, 6> fixed_keys{"model", "cifar-stem", "classes", "users", "items", "optimizer"};

/// Free keys that change the order or the precision of sums, and so the last bits.
constexpr std::array<std::string_view, 5> bit_keys{"precision", "accumulate", "lanes", "threads", "deterministic"};

bool is_free(const std::string& key, const Recipe& recipe) {
  if (has_end(recipe.schedule) && (key == "epochs" || key == "samples")) return false;
  return std::ranges::find(free_keys, key) != free_keys.end();
}

/// Returns how two recipes differ in keys that `ignores` does not ignore.
template <class Ignores>
std::vector<Change> differences(const Json& then, const Json& now, Ignores ignores) {
  std::vector<Change> all;
  const auto text = [](const Json& recipe, const std::string& key) {
    return recipe.contains(key) ? recipe.at(key).dump() : "not set";
  };
  const auto compare = [&](const Json& some) {
    for (const auto& item : some.items()) {
      const std::string& key = item.key();
      const bool is_known = std::ranges::any_of(all, [&](const Change& one) { return one.key == key; });
      if (is_known || ignores(key)) continue;
      if (text(then, key) != text(now, key)) all.push_back({key, text(then, key), text(now, key)});
    }
  };
  compare(then);
  compare(now);
  return all;
}

/// Present fields are valid, because the index was read.
void require_training(const Json& content, const checkpoint::Checkpoint& from) {
  core::check_json(content, from.path() + "/index.json", "content", checkpoint::training_content,
                   "name a checkpoint of lockstep train; --init-from loads the weights of any");
}

/// Starts again a run that was killed before its first checkpoint, but not one that has more to lose.
void require_nothing_to_lose(const std::string& run_dir, const std::vector<std::string>& checkpoints) {
  if (!checkpoints.empty())
    throw core::Error{core::ExitCode::failed,
                      {.what = fmt::format("no checkpoint in '{}' is whole, out of {}", run_dir, checkpoints.size()),
                       .where = resume_flag,
                       .fix = "copy one again, or move all away to start a new run"}};
  std::error_code error;
  const std::string folder = checkpoint::checkpoints_in(run_dir);
  if (fs::is_directory(folder, error) && !checkpoint::list_set_aside(folder).empty())
    throw core::Error{
        core::ExitCode::failed,
        {.what =
             fmt::format("all checkpoints in '{}' are set aside, because they may contain a change in memory", run_dir),
         .where = resume_flag,
         .fix = "choose another --run-dir for a new run, or inspect them: lockstep ckpt cat, diff"}};
  const bool has_finished = state_in(run_dir) == name(RunStatus::finished);
  if (has_finished || fs::exists(fs::symlink_status(fs::path{run_dir} / "weights.h5", error)))
    core::fail_usage({.what = fmt::format("'{}' holds a run that ended without a checkpoint", run_dir),
                      .where = resume_flag,
                      .expected = "one with a checkpoint, or none",
                      .fix = "choose another --run-dir; --init-from starts a new run with its weights"});
}

}  // namespace

std::optional<checkpoint::Checkpoint> find_checkpoint(const runtime::Communicator& world, const RunOptions& options) {
  const bool is_auto = options.resume == "auto";
  if (options.resume == "never" || (is_auto && options.run_dir.empty())) return std::nullopt;
  std::vector<std::string> paths;  // on rank 0
  runtime::together(world, [&] {
    if (world.rank() == 0 && is_auto) checkpoint::restore_replaced(checkpoint::checkpoints_in(options.run_dir));
  });
  const bool is_one = !is_auto && world.rank() == 0 && checkpoint::is_checkpoint(options.resume);
  if (runtime::broadcast_value(world, is_one)) return checkpoint::open_checkpoint(world, options.resume);
  const std::string& from = is_auto ? options.run_dir : options.resume;
  auto newest = checkpoint::open_first_whole(world, [&] { return paths = checkpoint::find_checkpoints(from); });
  const std::string folder = checkpoint::folder_meant(from);
  runtime::together(world, [&] {
    if (world.rank() == 0) checkpoint::tell_links(folder, newest ? newest->path() : "");
  });
  if (newest) return newest;
  if (is_auto) {
    runtime::together(world, [&] {
      if (world.rank() != 0) return;
      std::ranges::copy(checkpoint::list_links(folder), std::back_inserter(paths));
      require_nothing_to_lose(options.run_dir, paths);
    });
    return std::nullopt;
  }
  core::fail_usage({.what = fmt::format("there is no whole checkpoint in '{}'{}", options.resume,
                                        checkpoint::absence_of(options.resume)),
                    .where = resume_flag,
                    .expected = "a run's folder, or a checkpoint in its folder checkpoints",
                    .fix = "name another, or start a new run without --resume"});
}

std::string digest_of_set(const Recipe& recipe) {
  return recipe.synthetic ? "" : io::digest_of_file((fs::path{recipe.data} / "manifest.json").string());
}

std::string checkpoint_content(const Recipe& recipe, const Epochs& epochs, const RunState& state, const BadStep* bad) {
  Json content{{"recipe_name", recipe.name},      {"recipe", Json::parse(recipe_json(recipe))},
               {"set_digest", epochs.set_digest}, {"epoch_steps", epochs.n_batches},
               {"ranks", epochs.n_ranks},         {"state", Json::parse(to_json(state))}};
  if (bad != nullptr) content["bad_step"] = Json::parse(to_json(*bad));
  return content.dump();
}

RunState resume_state(const checkpoint::Checkpoint& from, const Recipe& recipe, const Epochs& epochs, bool is_anyway) {
  const Json content = Json::parse(from.content());
  require_training(content, from);
  if (content.contains("bad_step"))
    core::fail_usage({.what = fmt::format("'{}' is kept to replay a bad step, not to resume from", from.path()),
                      .where = resume_flag,
                      .expected = "a checkpoint of a run",
                      .fix = "--replay repeats the step; --init-from starts a new run with its weights"});
  if (content.at("epoch_steps") != epochs.n_batches)
    core::fail_usage({.what = fmt::format("an epoch of checkpoint '{}' has {} steps, but would now have {}",
                                          from.path(), content.at("epoch_steps").dump(), epochs.n_batches),
                      .where = resume_flag,
                      .expected = "a set with the same number of samples, and the same batch",
                      .fix = "use the earlier set and batch, or start a new run with its weights: --init-from"});
  if (recipe.order == data::Order::torch && content.at("ranks") != epochs.n_ranks)
    core::fail_usage({.what = fmt::format("checkpoint '{}' comes from a run on {} ranks, not {}, with the order torch",
                                          from.path(), content.at("ranks").dump(), epochs.n_ranks),
                      .where = resume_flag,
                      .expected = "the same number of ranks, because PyTorch's order depends on it",
                      .fix = fmt::format("start {} ranks", content.at("ranks").dump())});
  const auto other = differences(content.at("recipe"), Json::parse(recipe_json(recipe)),
                                 [&](const std::string& key) { return is_free(key, recipe); });
  for (const Change& one : other)
    if (is_anyway && std::ranges::find(fixed_keys, one.key) != fixed_keys.end())
      core::fail_usage(
          {.what = fmt::format("checkpoint '{}' comes from another network or optimizer: {} was {}, and is now {}",
                               from.path(), one.key, one.then, one.now),
           .where = resume_flag,
           .expected = fmt::format("the same {}, also with --resume-anyway", one.key),
           .fix = "use the earlier one, or start a new run with the weights that fit: --init-from"});
  if (!is_anyway) {
    if (!other.empty())
      core::fail_usage({.what = fmt::format("checkpoint '{}' comes from another recipe: {} was {}, and is now {}{}",
                                            from.path(), other.front().key, other.front().then, other.front().now,
                                            other.size() == 1 ? "" : fmt::format("; {} more differ", other.size() - 1)),
                        .where = resume_flag,
                        .expected = "the recipe and flags that the run was started with",
                        .fix = "use these, or resume with the new values: --resume-anyway"});
    if (content.at("set_digest") != epochs.set_digest)
      core::fail_usage(
          {.what = fmt::format("checkpoint '{}' comes from another set than '{}'", from.path(), recipe.data),
           .where = resume_flag,
           .expected = fmt::format("a set whose manifest.json has digest {}, not {}",
                                   content.at("set_digest").get<std::string>(), epochs.set_digest),
           .fix = "name the set that the run was started with, or resume with this one: --resume-anyway"});
  }
  return parse_run_state(content.at("state").dump());
}

void require_ledger(const runtime::Communicator& world, const checkpoint::Checkpoint& from, const RunState& state,
                    Batches& training) {
  const std::uint64_t n_steps = state.of_epoch.n_steps;
  const std::uint64_t mine = training.ledger_before(state.epoch, n_steps).hash();
  const std::vector<std::uint64_t> all = runtime::gather_values(world, std::span{&mine, 1});
  const std::uint64_t ledger =
      runtime::broadcast_value(world, std::accumulate(all.begin(), all.end(), std::uint64_t{0}));
  runtime::together(world, [&] {
    if (state.ledger != ledger)
      core::refuse_field(from.path() + "/index.json", "content.state.ledger", fmt::format("is {}", state.ledger),
                         fmt::format("{}, after {} step{} of the epoch, with the samples and the order of this run",
                                     ledger, n_steps, n_steps == 1 ? "" : "s"),
                         checkpoint::damaged_fix);
  });
}

std::vector<Change> changes_of_bits(const checkpoint::Checkpoint& from, const Recipe& recipe, const Epochs& epochs) {
  if (!recipe.deterministic) return {};
  const Json content = Json::parse(from.content());
  // Without lanes the order of sums depends on who adds them up.
  const bool depends_on_strategy = !recipe.device.adds_lanes && epochs.n_ranks > 1;
  const auto keeps_bits = [&](const std::string& key) {
    return is_free(key, recipe) && std::ranges::find(bit_keys, key) == bit_keys.end() &&
           !(depends_on_strategy && key == "strategy");
  };
  std::vector<Change> all = differences(content.at("recipe"), Json::parse(recipe_json(recipe)), keeps_bits);
  const auto is_one = [](const std::string& n) { return n == "0" || n == "1" || n == "not set"; };  // as threads_of()
  std::erase_if(all, [&](const Change& one) { return one.key == "threads" && is_one(one.then) && is_one(one.now); });
  const int n_ranks = static_cast<int>(epochs.n_ranks);
  const bool is_any = resume_promise(recipe, n_ranks).same_bits == SameBits::any_ranks;
  if (content.at("ranks") != epochs.n_ranks && !is_any)
    all.push_back({"the number of ranks", content.at("ranks").dump(), std::to_string(epochs.n_ranks)});
  if (content.at("set_digest") != epochs.set_digest)
    all.push_back({"the digest of the set", content.at("set_digest").dump(), Json(epochs.set_digest).dump()});
  return all;
}

}  // namespace lockstep::training
