#include "checkpoint/folder.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <system_error>

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/pending.hpp"
#include "core/temporary.hpp"

namespace lockstep::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view step_prefix = "step-";
constexpr std::string_view aside = ".suspect";

bool is_name(std::string_view name) {
  return name.size() > step_prefix.size() && name.starts_with(step_prefix) &&
         std::ranges::all_of(name.substr(step_prefix.size()), [](char c) { return c >= '0' && c <= '9'; });
}

/// Compares numbers of steps, which may have more than nine digits.
bool is_newer(const std::string& a, const std::string& b) {
  const std::string first = fs::path{a}.filename().string(), second = fs::path{b}.filename().string();
  return first.size() != second.size() ? first.size() > second.size() : first > second;
}

bool is_done(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(fs::path{path} / done_name, error);
}

/// Names of the files of a checkpoint.
std::vector<std::string> files_in(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry{path, error}, end; !error && entry != end; entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (name == index_name || name == done_name || is_rank_file(name)) names.push_back(std::move(name));
  }
  return names;
}

}  // namespace

std::string name_of(std::uint64_t n_steps) { return fmt::format("{}{:09}", step_prefix, n_steps); }

std::string file_name_of(int rank) { return fmt::format("rank-{:05}.h5", rank); }

bool is_rank_file(std::string_view name) {
  constexpr std::string_view before = "rank-", after = ".h5";
  constexpr std::size_t least_digits = 5, most_digits = 10;
  if (!name.starts_with(before) || !name.ends_with(after)) return false;
  name.remove_prefix(before.size());
  name.remove_suffix(std::min(after.size(), name.size()));
  return name.size() >= least_digits && name.size() <= most_digits &&
         name.find_first_not_of("0123456789") == std::string_view::npos;
}

bool is_checkpoint(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(fs::path{path} / index_name, error) || is_done(path);
}

std::vector<std::string> list_checkpoints(const std::string& folder) try {
  std::vector<std::string> paths;
  if (!fs::is_directory(folder)) return paths;
  for (const fs::directory_entry& entry : fs::directory_iterator{folder})
    if (is_name(entry.path().filename().string()) && entry.is_directory()) paths.push_back(entry.path().string());
  std::ranges::sort(paths, is_newer);
  return paths;
} catch (const fs::filesystem_error& error) {
  throw core::Error{core::ExitCode::system,
                    {.what = fmt::format("cannot look for checkpoints in '{}': {}", folder, error.code().message()),
                     .fix = "make it readable"}};
}

std::string checkpoints_in(const std::string& run_dir) { return (fs::path{run_dir} / "checkpoints").string(); }

std::vector<std::string> find_checkpoints(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(checkpoints_in(path), error)) return list_checkpoints(checkpoints_in(path));
  if (is_checkpoint(path)) return {path};
  return list_checkpoints(path);
}

std::vector<std::string> require_checkpoints(const std::string& path, std::string_view where) {
  std::vector<std::string> paths = find_checkpoints(path);
  if (!paths.empty()) return paths;
  std::error_code error;
  const std::string weights = (fs::path{path} / "weights.h5").string();
  const bool has_weights = fs::is_regular_file(weights, error);
  core::fail_usage({.what = fmt::format("there is no checkpoint in '{}'", path),
                    .where = std::string{where},
                    .expected = "a run's folder, or a checkpoint in its folder checkpoints",
                    .fix = fmt::format("lockstep train --save-every N writes them{}",
                                       has_weights ? fmt::format("; its weights are in '{}'", weights) : "")});
}

std::vector<std::string> names_of(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  const fs::path here{path};
  for (fs::directory_iterator entry{here.parent_path(), error}, end; !error && entry != end; entry.increment(error)) {
    std::error_code is_no_link;
    if (fs::read_symlink(entry->path(), is_no_link) == here.filename() && !is_no_link)
      names.push_back(entry->path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

// Makes the link in a folder of its own, because a link cannot be made in place of another.
void give_name(const std::string& path, const std::string& name) noexcept try {
  const fs::path checkpoint{path}, link = checkpoint.parent_path() / name;
  const core::Temporary folder = core::make_temporary_folder(link.string());
  if (!folder) throw fs::filesystem_error{"cannot make a folder", std::error_code{errno, std::generic_category()}};
  const fs::path made = fs::path{folder.path} / name;
  std::error_code error;
  fs::create_directory_symlink(checkpoint.filename(), made, error);
  if (!error) fs::rename(made, link, error);
  fs::remove_all(folder.path);
  if (error) throw fs::filesystem_error{"cannot make a link", error};
  core::sync_to_disk(fs::absolute(link).parent_path().string());
} catch (const std::exception& error) {
  core::log_warning(fmt::format("checkpoint '{}' cannot be kept as '{}': {}", path, name, error.what()));
}

void restore_replaced(const std::string& folder) {
  std::error_code error;
  std::vector<fs::path> paths;
  for (fs::directory_iterator entry{folder, error}, end; !error && entry != end; entry.increment(error))
    paths.push_back(entry->path());
  for (const fs::path& path : paths) {
    const std::string name = path.filename().string();
    const std::string stem = name.substr(0, name.find(".old-"));
    const fs::path original = path.parent_path() / stem;
    if (stem == name || !is_name(stem)) continue;
    if (const std::string reason = foreign_reason(path.string()); !reason.empty()) {
      core::log_warning(left_alone_text(path.string(), reason));
    } else if (is_done(path.string()) && !fs::exists(fs::symlink_status(original, error))) {
      fs::rename(path, original, error);
      if (!error)
        core::log_info(fmt::format("'{}' has its name again: a killed run was about to replace it", original.string()));
    } else {
      remove_checkpoint(path.string());
      core::log_info(fmt::format("removed '{}', which a killed run had replaced", path.string()));
    }
  }
}

std::vector<std::string> set_aside_newer(const std::string& folder, std::uint64_t n_steps) {
  std::vector<std::string> moved;
  for (const std::string& path : list_checkpoints(folder)) {
    if (!is_newer(path, name_of(n_steps))) continue;
    const std::string to = path + std::string{aside};
    for (const std::string& name : names_of(path)) fs::remove(fs::path{folder} / name);
    if (fs::exists(fs::symlink_status(to))) remove_checkpoint(to);
    fs::rename(path, to);
    moved.push_back(path);
  }
  return moved;
}

std::vector<std::string> list_set_aside(const std::string& folder) {
  std::vector<std::string> paths;
  for (const fs::directory_entry& entry : fs::directory_iterator{folder}) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(aside) && is_name(std::string_view{name}.substr(0, name.size() - aside.size())))
      paths.push_back(entry.path().string());
  }
  std::ranges::sort(paths);
  return paths;
}

std::string foreign_reason(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (fs::is_symlink(status)) return "it is a symbolic link";
  if (!fs::is_directory(status)) return "it is not a folder";
  for (fs::directory_iterator entry{path, error}, end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const bool is_ours = name == index_name || name == done_name || is_rank_file(name);
    if (!is_ours || !fs::is_regular_file(entry->symlink_status(error))) return fmt::format("it contains '{}'", name);
  }
  return error ? fmt::format("it cannot be listed: {}", error.message()) : "";
}

std::string left_alone_text(const std::string& path, const std::string& reason) {
  return fmt::format("'{}' is left alone, as it is not a checkpoint made by Lockstep: {}", path, reason);
}

// Removes the checkpoint's name first, so that no reader sees half of it. If this process is killed before the files
// are gone, the next run removes them.
void remove_checkpoint(const std::string& path) {
  if (const std::string reason = foreign_reason(path); !reason.empty())
    core::fail_usage({.what = fmt::format("'{}' is not removed: {}", path, reason),
                      .expected = "a checkpoint made by Lockstep, with nothing else in its folder",
                      .fix = "move it away, or remove it yourself"});
  const auto fail = [&](int error) {
    core::fail_system(fmt::format("cannot remove '{}': {}", path, core::system_reason(error)));
  };
  for (const std::string& name : names_of(path))
    if (::unlink((fs::path{path}.parent_path() / name).c_str()) != 0 && errno != ENOENT) fail(errno);
  const core::Temporary gone = core::make_temporary_folder(path);
  if (!gone) fail(errno);
  if (std::rename(path.c_str(), gone.path.c_str()) != 0) {
    const int error = errno;
    ::rmdir(gone.path.c_str());
    fail(error);
  }
  for (const std::string& name : files_in(gone.path)) ::unlink((fs::path{gone.path} / name).c_str());
  if (::rmdir(gone.path.c_str()) != 0)
    core::log_warning(fmt::format("cannot remove '{}': {}", gone.path, core::system_reason(errno)));
}

void remove_older(const std::string& newest, std::size_t n_kept, std::uint64_t n_sound_steps,
                  std::set<std::string>& told) noexcept try {
  std::size_t n_done = 1;
  bool has_sound = !is_newer(newest, name_of(n_sound_steps));
  for (const std::string& path : list_checkpoints(fs::path{newest}.parent_path().string())) {
    if (!is_newer(newest, path)) continue;
    if (const std::string reason = foreign_reason(path); !reason.empty()) {
      if (told.insert(path).second) core::log_warning(left_alone_text(path, reason));
      continue;
    }
    if (is_done(path) && !names_of(path).empty()) continue;
    const bool is_newest_sound = is_done(path) && !has_sound && !is_newer(path, name_of(n_sound_steps));
    has_sound = has_sound || is_newest_sound;
    const bool is_counted = is_done(path) && n_done < n_kept;
    n_done += is_counted ? 1 : 0;
    if (!is_counted && !is_newest_sound) remove_checkpoint(path);
  }
} catch (const std::exception& error) {
  core::log_warning(fmt::format("cannot remove checkpoints older than '{}': {}", newest, error.what()));
}

}  // namespace lockstep::checkpoint
