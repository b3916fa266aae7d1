#include "training/run/folder_refusals.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "core/error.hpp"
#include "core/shortage.hpp"

namespace lockstep::training {
namespace {

namespace fs = std::filesystem;

/// A name that a run uses, except its lock, which is checked when it is taken.
struct OwnName {
  std::string_view name;
  bool is_folder = false;
};
constexpr std::array own_names{OwnName{"run.json"}, OwnName{"status.json"}, OwnName{"log.jsonl"}, OwnName{"weights.h5"},
                               OwnName{"checkpoints", true}};

fs::file_status status_there(const std::string& folder, std::string_view name) {
  std::error_code error;
  return fs::symlink_status(fs::path{folder} / name, error);
}

/// Whether it may have entries; true if it cannot be listed.
bool may_have_entries(const fs::path& folder) {
  std::error_code error;
  const bool is_empty = fs::is_empty(folder, error);
  return error || !is_empty;
}

bool is_of_a_run(const std::string& folder, const OwnName& own) {
  const fs::path path = fs::path{folder} / own.name;
  const fs::file_status status = status_there(folder, own.name);
  std::error_code error;
  if (own.is_folder) return fs::is_symlink(status) || (fs::is_directory(status) && may_have_entries(path));
  // A run that was killed during its start leaves an empty log.
  if (own.name == "log.jsonl") return fs::is_regular_file(status) && fs::file_size(path, error) > 0;
  return fs::exists(status);
}

}  // namespace

bool holds_run(const std::string& folder) {
  for (const OwnName& own : own_names)
    if (is_of_a_run(folder, own)) return true;
  return false;
}

// A user may have moved a run's checkpoints to another file system, behind a link. Only a new run refuses that link, as
// another run.
void refuse_foreign_names(const std::string& folder) {
  for (const OwnName& own : own_names) {
    const fs::file_status status = status_there(folder, own.name);
    const bool is_link = fs::is_symlink(status);
    std::error_code error;
    const bool is_folder = fs::is_directory(fs::path{folder} / own.name, error);
    if (!fs::exists(status) || (own.is_folder ? is_folder : fs::is_regular_file(status))) continue;
    const std::string_view kind = is_link         ? "a symbolic link, which a run does not write through"
                                  : own.is_folder ? "not a folder"
                                  : is_folder     ? "a folder"
                                                  : "a pipe or device";
    const std::string_view wanted = own.is_folder ? "a folder" : "a regular file";
    core::fail_usage({.what = fmt::format("'{}/{}' is {}", folder, own.name, kind),
                      .where = run_dir_flag,
                      .expected = fmt::format("{} of this name, or none", wanted),
                      .fix = fmt::format("{}, or choose another name", is_link ? "remove the link" : "move it away")});
  }
}

void refuse_other_run(const std::string& folder) {
  core::fail_usage({.what = fmt::format("'{}' holds another run", folder),
                    .where = run_dir_flag,
                    .expected = "a folder without a run, or the name of a new one",
                    .fix = "resume that run with --resume auto, choose another name, or leave out --run-dir for a new "
                           "folder in runs/"});
}

void refuse_run_under_way(const std::string& folder, const std::string& holder) {
  core::fail_usage({.what = fmt::format("a run is under way in '{}'{}{}", folder, holder.empty() ? "" : ": ", holder),
                    .where = run_dir_flag,
                    .expected = "a run that has ended, or the name of a new folder",
                    .fix = "wait for it or stop it; or choose another name"});
}

void refuse_lock(const RunLock& lock) {
  core::fail_usage({.what = fmt::format("a run cannot lock '{}': {}", lock.path,
                                        lock.error == EEXIST ? "a pipe or device" : core::system_reason(lock.error)),
                    .where = run_dir_flag,
                    .expected = "a regular file of this name, or none",
                    .fix = "move it away, or choose another name"});
}

void refuse_shard_set(const std::string& folder) {
  core::fail_usage({.what = fmt::format("'{}' holds a set of shards", folder),
                    .where = run_dir_flag,
                    .expected = "a folder without one, or the name of a new one",
                    .fix = "choose another name, or leave out --run-dir for a new folder in runs/"});
}

void refuse_drill(const std::string& folder) {
  core::fail_usage({.what = fmt::format("'{}' holds a run that was started without --inject", folder),
                    .where = "--inject, --run-dir",
                    .expected = "a new folder, or a run that was started with --inject",
                    .fix = "resume it in another folder: --resume FOLDER --run-dir ANOTHER"});
}

void fail_for_lost_place(const std::string& folder) {
  throw core::Error{
      core::ExitCode::system,
      {.what =
           fmt::format("the run has lost its folder '{}': the folder, or its file {}, was renamed, removed or replaced",
                       folder, run_lock_name),
       .where = run_dir_flag,
       .expected = "a folder that stays in its place until the run ends",
       .fix = "a renamed folder has all until the last checkpoint: resume it there, by --resume auto --run-dir"}};
}

void fail_for_other_checkpoints(const std::string& checkpoints) {
  throw core::Error{core::ExitCode::system,
                    {.what = fmt::format("the run has lost its folder '{}': another folder, or a link to one, took its "
                                         "place",
                                         checkpoints),
                     .where = run_dir_flag,
                     .expected = "a folder that stays in its place until the run ends",
                     .fix = "put the run's own folder back, and resume with --resume auto"}};
}

void refuse_place(const std::string& folder, int error) {
  const std::string failure = fmt::format("cannot write a run to '{}'", folder);
  core::refuse_shortage(failure, run_dir_flag, error);
  core::fail_usage({.what = fmt::format("{}: {}", failure, core::system_reason(error)),
                    .where = run_dir_flag,
                    .expected = "a writable folder, or the name of a new one",
                    .fix = "name a folder of yours, for example one on the cluster's scratch file system"});
}

}  // namespace lockstep::training
