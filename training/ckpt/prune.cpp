// lockstep ckpt prune: removes all but the newest whole checkpoints and those with a name, and removes leftovers.

#include <filesystem>
#include <memory>

#include "checkpoint/folder.hpp"
#include "core/log.hpp"
#include "core/print.hpp"
#include "core/temporary.hpp"
#include "training/ckpt/checkpoints.hpp"
#include "training/ckpt/verbs.hpp"

namespace lockstep::training::ckpt {
namespace {

struct PruneArguments {
  std::string folder;
  std::uint64_t keep = 3;
};

bool is_whole(const std::string& path) {
  try {
    static_cast<void>(checkpoint::open_checkpoint(runtime::Communicator::alone(), path));
    return true;
  } catch (const core::Error& error) {
    if (error.code() != core::ExitCode::failed) throw;
    return false;
  }
}

/// Not one of ours: it is reported, but neither counted nor removed.
bool is_foreign(const std::string& path) {
  const std::string reason = checkpoint::foreign_reason(path);
  if (!reason.empty()) core::log_warning(checkpoint::left_alone_text(path, reason));
  return !reason.empty();
}

/// It may be that of another run.
void refuse_link(const std::string& folder) {
  std::error_code error;
  const std::string target = std::filesystem::canonical(folder, error).string();
  if (checkpoint::is_link(folder) && !error)
    core::fail_usage({.what = fmt::format("'{}' is a symbolic link, and nothing is removed through a link", folder),
                      .where = "FOLDER",
                      .expected = "the folder itself",
                      .fix = fmt::format("if it is this run's alone: lockstep ckpt prune {}", target)});
}

core::ExitCode prune(const PruneArguments& arguments) {
  if (checkpoint::is_checkpoint(arguments.folder))
    core::fail_usage({.what = fmt::format("'{}' is one checkpoint", arguments.folder),
                      .where = "FOLDER",
                      .expected = "a run's folder",
                      .fix = "to remove it, use rm -r"});
  const std::string folder = checkpoint::folder_meant(arguments.folder);
  refuse_link(folder);
  checkpoint::restore_replaced(folder);
  checkpoint::tell_links(folder);
  const auto paths = require_checkpoints(arguments.folder);
  std::vector<std::string> surplus;
  std::uint64_t n_kept = 0, n_named = 0;
  for (const std::string& path : paths) {
    if (is_foreign(path)) continue;
    checkpoint::refuse_misnamed(path, checkpoint::misnamed_reason(path));
    const bool has_name = !checkpoint::names_of(path).empty();
    if ((n_kept < arguments.keep || has_name) && is_whole(path))
      ++(n_kept < arguments.keep ? n_kept : n_named);
    else
      surplus.push_back(path);
  }
  if (n_kept == 0)
    throw core::Error{core::ExitCode::failed,
                      {.what = fmt::format("no checkpoint in '{}' is whole, so none is removed", arguments.folder),
                       .where = "FOLDER",
                       .fix = "lockstep ckpt verify tells what is wrong; to remove them, use rm -r"}};
  core::remove_leftovers(folder, "");
  for (const std::string& path : checkpoint::list_set_aside(folder))
    if (!is_foreign(path)) surplus.push_back(path);
  for (const std::string& path : surplus) {
    checkpoint::remove_checkpoint(path);
    core::print("{} removed\n", path);
  }
  core::print("{} kept\n", n_kept + n_named);
  return core::ExitCode::ok;
}

}  // namespace

constexpr std::string_view prune_help = R"(  lockstep ckpt prune r --keep 1

Removes all checkpoints that are older than the N newest complete ones. Also removes damaged and incomplete checkpoints,
leftovers of killed runs, and checkpoints that a run marked as suspect.
A complete checkpoint with another name (best, epoch-010) stays: rm that name first. A symbolic link, or a folder with
files that Lockstep has not made, stays, and a message says so. Nothing is removed if FOLDER's checkpoints are behind a
symbolic link, or if one has the name of another step (exit code 2). Do not use it on a running training, which keeps as
many as its own --keep.

)";

Action declare_prune(core::Flags& flags) {
  flags.note(prune_help);
  auto arguments = std::make_shared<PruneArguments>();
  flags.word("FOLDER", arguments->folder);
  flags.number("--keep N", arguments->keep, std::uint64_t{1}, std::uint64_t{1'000'000},
               "keep the N newest complete checkpoints");
  return {.check = {}, .run = [arguments](const runtime::Session& session) {
            return on_first_rank(session, [&] { return prune(*arguments); });
          }};
}

}  // namespace lockstep::training::ckpt
