#include "training/check/replay.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "checkpoint/content.hpp"
#include "checkpoint/folder.hpp"
#include "checkpoint/reader.hpp"
#include "core/json.hpp"
#include "core/print.hpp"
#include "nn/graph/models.hpp"
#include "parallel/slots.hpp"
#include "runtime/topology.hpp"
#include "training/recipe/cuts.hpp"
#include "training/train/bad_step.hpp"
#include "training/train/resume.hpp"
#include "training/train/setup.hpp"
#include "training/train/state.hpp"

namespace lockstep::training {
namespace {

constexpr const char* replay_flag = "--replay";
constexpr std::size_t most_shown = 8;  // samples

struct Bundle {
  std::string path{};
  std::uint64_t n_ranks = 1;
  Epochs epochs{};
  RunState state{};  ///< before the step
  BadStep bad{};
};

struct Replay {
  std::string path{};
  Bundle bundle{};
  RecipeWords words{};
  ResolvedRecipe resolved{};
};

nlohmann::json read_content(const std::string& path) {
  const bool is_there = checkpoint::is_checkpoint(path);
  nlohmann::json content;
  if (is_there) content = nlohmann::json::parse(checkpoint::Checkpoint{path}.content());
  if (content.contains("bad_step")) {
    core::check_json(content, path + "/index.json", "content", checkpoint::training_content,
                     "name a folder bad-step-N of a run");
    return content;
  }
  std::error_code error;
  const bool is_folder = std::filesystem::is_directory(path, error);
  core::fail_usage(
      {.what = fmt::format("'{}' {}", path, is_folder ? "does not hold a step that was not finite" : "does not exist"),
       .where = replay_flag,
       .expected = "a folder bad-step-N of a run",
       .fix = "lockstep train keeps one when a loss is not finite"});
}

/// The recipe as a recipe file could have it: TOML's booleans, numbers, texts and lists are JSON's.
std::string as_toml(const nlohmann::json& recipe) {
  std::string text;
  for (const auto& [key, value] : recipe.items()) text += fmt::format("{} = {}\n", key, value.dump());
  return text;
}

/// As many parts as all ranks had together, if groups allow it: what fitted into their memory fits here.
std::uint64_t parts_on_one_rank(const Recipe& recipe, std::uint64_t n_ranks) {
  if (recipe.deterministic) return recipe.accumulate;  // lanes are parts already
  const std::uint64_t group = std::max<std::uint64_t>(1, recipe.bn_group);
  const std::uint64_t most = std::max<std::uint64_t>(1, recipe.batch / group);
  std::uint64_t parts = n_ranks > most ? most : std::min(most, recipe.accumulate * n_ranks);
  while (parts > 1 && recipe.batch % (parts * group) != 0) --parts;
  return parts;
}

void read_bundle(Replay& replay) {
  const nlohmann::json content = read_content(replay.path);
  replay.bundle = {.path = replay.path,
                   .n_ranks = content.at("ranks"),
                   .epochs = {.set_digest = content.at("set_digest"), .n_batches = content.at("epoch_steps")},
                   .state = parse_run_state(content.at("state").dump()),
                   .bad = parse_bad_step(content.at("bad_step").dump())};
  replay.resolved = resolve_text(as_toml(content.at("recipe")), replay.path, replay.words);
  Recipe& recipe = replay.resolved.recipe;
  recipe.val_split.clear();
  recipe.stage.clear();
  recipe.accumulate = parts_on_one_rank(recipe, replay.bundle.n_ranks);
}

std::string text_of(const std::vector<std::uint64_t>& samples) {
  const std::size_t n_shown = std::min(samples.size(), most_shown);
  const std::string more =
      samples.size() > n_shown ? fmt::format(" and {} more", samples.size() - n_shown) : std::string{};
  return fmt::format("{}{}", fmt::join(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(n_shown), " "),
                     more);
}

bool is_finite(std::span<const std::byte> floats) {
  for (; floats.size() >= sizeof(float); floats = floats.subspan(sizeof(float))) {
    float value = 0;
    std::memcpy(&value, floats.data(), sizeof value);
    if (!std::isfinite(value)) return false;
  }
  return true;
}

class Step {
 public:
  Step(const Replay& replay, Setup& setup)
      : bundle_{replay.bundle}, recipe_{replay.resolved.recipe}, setup_{setup}, learner_{*setup.learner} {
    setup_.batches.training->begin_epoch(bundle_.state.epoch, bundle_.state.of_epoch.n_steps);
    batch_ = setup_.batches.training->next();
    core::require(batch_ != nullptr, "the step is within the epoch");
    place_ = {.learning_rate = bundle_.bad.learning_rate, .epoch = bundle_.state.epoch, .step = bundle_.state.n_steps};
  }

  /// Whether the step is finite; prints the details.
  bool make() {
    tell_records();
    tell_data();
    const auto [loss, n] = loss_of(*batch_);
    const auto seen = learner_.not_finite();
    const double mean = loss / static_cast<double>(n);
    core::print("loss      {} over {} samples{}\n", std::isnan(mean) ? "nan" : fmt::format("{:.6g}", mean), n,
                seen ? fmt::format(", first not finite in {}", seen->where) : "");
    const bool is_good = std::isfinite(loss);
    const bool is_gradient_good = tell_gradient();
    if (seen) tell_samples();
    return is_good && is_gradient_good;
  }

 private:
  void tell_records() const {
    core::print("step      {} of the run, {} of epoch {}; learning rate {:.4g}; state before it in {}\n",
                bundle_.state.n_steps + 1, bundle_.state.of_epoch.n_steps + 1, bundle_.state.epoch + 1,
                bundle_.bad.learning_rate, bundle_.path);
    for (const Sighting& one : bundle_.bad.seen)
      core::print("seen by   rank {} of {} on {}: first in {}{}\n", one.rank, bundle_.n_ranks, one.host, one.where,
                  one.samples.empty() ? "" : fmt::format(", by samples {}", text_of(one.samples)));
  }

  void tell_data() const {
    std::vector<std::uint64_t> bad;
    const bool is_x_float = !nn::find_model(recipe_.model).takes_ids;
    const bool is_y_float = setup_.batches.training->info().spec.classes.empty();
    for (std::uint64_t i = 0; i < batch_->n; ++i) {
      const data::Batch one = batch_->part(i, 1);
      const bool is_good = (!is_x_float || is_finite(one.x)) && (!is_y_float || is_finite(one.y));
      if (!is_good) bad.push_back(one.ids.empty() ? i : one.ids[0]);
    }
    core::print("data      {}\n", bad.empty() ? fmt::format("all numbers of {} samples are finite", batch_->n)
                                              : fmt::format("not finite: samples {}", text_of(bad)));
  }

  /// Returns the sum and the number of samples.
  std::pair<double, std::uint64_t> loss_of(const data::Batch& batch) {
    learner_.forget_not_finite();
    learner_.compute_gradients(batch, place_);
    const parallel::StepReport report = learner_.report_last();
    return {report.loss, report.n};
  }

  /// Reports the gradient of the previous pass.
  bool tell_gradient() {
    const parallel::Synchronizer& synchronizer = learner_.synchronizer();
    const std::span<const float> gradients = runtime::on_host(synchronizer.arenas().gradients);
    const auto bad = parallel::find_not_finite(synchronizer.sharding().slots(), gradients);
    double sum = 0;
    for (const float value : gradients) sum += static_cast<double>(value) * static_cast<double>(value);
    core::print("gradient  {}\n",
                bad ? fmt::format("not finite, first in {}", synchronizer.sharding().slots()[*bad].name)
                    : fmt::format("finite, norm {:.4g}", std::sqrt(sum)));
    return !bad;
  }

  /// Reports each sample separately. Not possible with batch normalization, where a sample's loss depends on its group.
  void tell_samples() {
    if (!learner_.network().statistics().empty() || batch_->ids.empty()) return;
    std::vector<std::uint64_t> bad;
    for (std::uint64_t i = 0; i < batch_->n; ++i) {
      data::Batch one = batch_->part(i, 1);
      one.n_global = 1;
      if (!std::isfinite(loss_of(one).first)) bad.push_back(one.ids[0]);
    }
    core::print("samples   not finite on their own: {}\n", bad.empty() ? "none" : text_of(bad));
  }

  const Bundle& bundle_;
  const Recipe& recipe_;
  Setup& setup_;
  Learner& learner_;
  const data::Batch* batch_ = nullptr;
  StepPlace place_{};
};

void require_same_data(const Replay& replay, const Batches& batches) {
  const Epochs& then = replay.bundle.epochs;
  const std::string now = digest_of_set(replay.resolved.recipe);
  if (then.set_digest == now && then.n_batches == batches.n_batches()) return;
  core::fail_usage({.what = fmt::format("'{}' comes from another set than '{}', or from other batches", replay.path,
                                        replay.resolved.recipe.data),
                    .where = replay_flag,
                    .expected = fmt::format("epochs of {} steps; a set whose manifest.json has digest '{}', not '{}'",
                                            then.n_batches, then.set_digest, now),
                    .fix = "name the set with --data, and leave --batch as it was"});
}

int make_again(const Replay& replay, const runtime::Session& session, runtime::Watchdog& watchdog) {
  watchdog.enter(runtime::Activity::setup);
  const runtime::Communicator& world = session.world();
  bool is_finite = false;
  const auto complaint = core::complaint_of([&] {
    if (world.n_ranks() > 1)
      core::fail_usage({.what = fmt::format("{} ranks were started", world.n_ranks()),
                        .where = replay_flag,
                        .expected = "one",
                        .fix = "start it without a launcher"});
    require_data(replay.resolved.recipe);
    if (replay.resolved.recipe.precision == nn::Precision::f16)
      core::fail_usage({.what = "the run used f16, which the host does not support, but a replay runs on the host",
                        .where = replay_flag,
                        .expected = "another precision",
                        .fix = "use --precision f32, to see whether the step is finite there"});
    const auto place =
        open_device(world, {.kind = runtime::DeviceKind::host}, threads_of(world, replay.resolved.recipe));
    metrics::PhaseTimers timers;
    ResolvedRecipe resolved = replay.resolved;
    Setup setup = set_up(world, *place, resolved, {}, timers, [&] { watchdog.beat(); });
    require_same_data(replay, *setup.batches.training);
    setup.learner->load_checkpoint(checkpoint::open_checkpoint(world, replay.path), replay.bundle.state);
    watchdog.enter(runtime::Activity::training);
    is_finite = Step{replay, setup}.make();
    core::print("verdict   {}\n", is_finite ? "finite here: check what differs, such as the processor or its memory"
                                            : "not finite here either");
  });
  if (const auto bad = session.agree(complaint)) return core::to_int(*bad);
  return core::to_int(is_finite ? core::ExitCode::failed : core::ExitCode::ok);
}

}  // namespace

bool asks_for_replay(const std::vector<std::string>& arguments) {
  return std::ranges::any_of(arguments, [](const std::string& word) {
    return word == replay_flag || word.starts_with(fmt::format("{}=", replay_flag));
  });
}

Invocation parse_replay(const std::vector<std::string>& arguments) {
  auto replay = std::make_shared<Replay>();
  Invocation invocation;
  core::Flags flags{"lockstep train --replay FOLDER [flags]"};
  flags.text(replay_flag, replay->path);
  declare_keys(flags, replay->words);
  int nproc = 1;
  flags.number("--nproc", nproc, 1, 1);
  flags.seconds("--timeout", invocation.timeout);
  flags.parse(arguments);
  read_bundle(*replay);
  invocation.run = [replay](const runtime::Session& session, runtime::Watchdog& watchdog) {
    return make_again(*replay, session, watchdog);
  };
  return invocation;
}

}  // namespace lockstep::training
