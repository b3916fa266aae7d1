#include "training/run/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "checkpoint/folder.hpp"
#include "checkpoint/weights.hpp"
#include "core/log.hpp"
#include "runtime/together.hpp"
#include "runtime/watch/guard.hpp"
#include "training/run/compat.hpp"
#include "training/run/display.hpp"
#include "training/run/folder_refusals.hpp"
#include "training/run/profile.hpp"
#include "training/run/status.hpp"

namespace lockstep::training {
namespace {

/// Whether the checkpoint to resume is in the run folder. Throws core::Error (usage) if there is a newer one, which
/// would then seem to be this run's.
bool goes_on(const RunOptions& options) {
  namespace fs = std::filesystem;
  if (options.resume == "never") return false;
  std::error_code error;
  const fs::path run{options.run_dir}, from{options.resume};
  if (options.resume == "auto" || fs::equivalent(from, run, error)) return true;
  const auto all = checkpoint::list_checkpoints(checkpoint::checkpoints_in(options.run_dir));
  const auto is_from = [&](const std::string& path) { return fs::equivalent(path, from, error); };
  const auto found = std::ranges::find_if(all, is_from);
  if (found != all.end() && found != all.begin())
    core::fail_usage(
        {.what = fmt::format("'{}' has a newer checkpoint than the one to resume: '{}'", options.run_dir, all.front()),
         .where = "--resume",
         .expected = "the newest one, or another --run-dir",
         .fix = "name another --run-dir, or move the newer ones away"});
  return found != all.end();
}

}  // namespace

Run::Run(const runtime::Communicator& world, const Recipe& recipe, const RunOptions& options, const core::Clock& clock)
    : world_{world}, options_{options}, clock_{clock}, data_{recipe.data} {
  runtime::together(world_, [&] {
    if (world_.rank() == 0 && !options_.dry_run) claim(recipe);
  });
}

// Fails before the training for what would fail after it.
void Run::claim(const Recipe& recipe) {
  if (options_.compat) style_ = &require_compat_style(recipe.name);
  auto directory = std::make_unique<RunDirectory>(options_.run_dir, recipe.name, goes_on(options_),
                                                  options_.drill != nullptr, clock_);
  const bool is_place_named = !options_.save_weights.empty();
  const std::string weights = is_place_named ? options_.save_weights : directory->file("weights.h5");
  if (std::error_code error; is_place_named || (!options_.evaluate_only && std::filesystem::exists(weights, error)))
    checkpoint::check_replaceable(weights, is_place_named ? "--save-weights" : run_dir_flag);
  directory_ = directory.get();
  observers_.push_back(std::move(directory));
}

void Run::start(const RunInfo& info, const Scene& scene, const std::optional<ResumeRecord>& resumed,
                runtime::Watchdog& watchdog) {
  if (options_.profile)
    observers_.push_back(
        std::make_unique<Profiler>(world_, scene.device, scene.network, scene.executor_options, scene.executor));
  runtime::together(world_, [&] {
    if (directory_ == nullptr) return;
    const core::Bytes weights = checkpoint::bytes_of(checkpoint::tensors_of(scene.network));
    const bool is_one_place = options_.save_weights.empty();
    if (scene.checkpoint.value > 0)
      checkpoint::check_room(directory_->file("checkpoints"),
                             is_one_place ? "a checkpoint and weights" : "a checkpoint",
                             {scene.checkpoint.value + (is_one_place ? weights.value : 0)}, "--run-dir");
    if (scene.goal.n_steps > 0)
      checkpoint::check_room(weights_path(), "weights", weights,
                             options_.save_weights.empty() ? "--run-dir" : "--save-weights");
    directory_->start(info, resumed);
  });
  share_status(watchdog);
  if (world_.rank() != 0) return;
  for (const std::string& warning : info.warnings) core::log_warning(warning);
  if (directory_ != nullptr) show(scene.goal);
}

// Collective: any remaining process can report how the run ended, if it sees the folder.
void Run::share_status(runtime::Watchdog& watchdog) {
  std::string path;
  if (directory_ != nullptr) path = std::filesystem::absolute(directory_->path()).string();
  path = world_.broadcast(path);
  if (path.empty()) return;
  watchdog.set_meeting_folder(path);
  if (core::complaint_of([&] { shared_ = std::make_shared<const io::Folder>(path); })) return;
  runtime::set_last_deed(mark_noted_failed, note_of(*shared_));
  watchdog.set_on_stall([folder = shared_](const std::string& report) { mark_failed(*folder, report); });
}

void Run::show(const Goal& goal) {
  if (style_ != nullptr)
    observers_.push_back(std::make_unique<CompatLog>(*style_, data_, printer_));
  else
    observers_.push_back(std::make_unique<Display>(goal, directory_->path(), options_.evaluate_only, printer_, clock_));
}

std::string Run::weights_path() const {
  return options_.save_weights.empty() ? directory_->file("weights.h5") : options_.save_weights;
}

bool Run::has_kept(const std::string& checkpoint) const {
  std::error_code error;
  const bool is_here = directory_ != nullptr &&
                       std::filesystem::equivalent(checkpoint::checkpoints_in(folder()),
                                                   std::filesystem::absolute(checkpoint, error).parent_path(), error);
  return runtime::broadcast_value(world_, is_here);
}

void Run::fail(const Position& at, const std::string& reason) const {
  if (directory_ != nullptr)
    directory_->fail(at, reason);
  else if (shared_ != nullptr)
    mark_failed(*shared_, reason);
}

const std::optional<core::Error>& Run::complaint() const noexcept {
  const bool is_status_told = directory_ == nullptr || !directory_->complaint();
  return is_status_told ? printer_.complaint() : directory_->complaint();
}

}  // namespace lockstep::training
