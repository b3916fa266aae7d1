#include "checkpoint/folder.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "checkpoint/index.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "core/pending.hpp"
#include "core/temporary.hpp"
#include "io/folder.hpp"

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

/// "b" of "a/b" and of "a/b/".
fs::path without_slash(const std::string& path) {
  const fs::path all{path};
  return all.has_filename() ? all : all.parent_path();
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

namespace {

std::vector<std::string> list_named(const std::string& folder, bool are_links) try {
  std::vector<std::string> paths;
  if (!fs::is_directory(folder)) return paths;
  for (const fs::directory_entry& entry : fs::directory_iterator{folder})
    if (is_name(entry.path().filename().string()) && entry.is_directory() && entry.is_symlink() == are_links)
      paths.push_back(entry.path().string());
  std::ranges::sort(paths, is_newer);
  return paths;
} catch (const fs::filesystem_error& error) {
  throw core::Error{core::ExitCode::system,
                    {.what = fmt::format("cannot look for checkpoints in '{}': {}", folder, error.code().message()),
                     .fix = "make it readable"}};
}

}  // namespace

std::vector<std::string> list_checkpoints(const std::string& folder) { return list_named(folder, false); }

std::vector<std::string> list_links(const std::string& folder) { return list_named(folder, true); }

void tell_links(const std::string& folder, const std::string& newest) {
  for (const std::string& path : list_links(folder))
    if (is_newer(path, newest)) core::log_warning(left_alone_text(path, foreign_reason(path)));
}

std::string misnamed_reason(const std::string& path, const std::string& content) {
  const std::string name = without_slash(path).filename().string();
  const nlohmann::json json = nlohmann::json::parse(content);
  if (!is_name(name) || !json.contains("state")) return "";
  const std::uint64_t n_steps = json.at("state").at("step");
  if (name == name_of(n_steps)) return "";
  return fmt::format("the folder of step {} is called {}, not {}", n_steps, name, name_of(n_steps));
}

std::string misnamed_reason(const std::string& path) {
  std::string reason;
  const auto unreadable = core::complaint_of([&] {
    const std::string text = io::read_text(io::Folder{path}.open(std::string{index_name}));
    reason = misnamed_reason(path, parse_index(text, path).content);
  });
  return unreadable ? "" : reason;
}

void refuse_misnamed(const std::string& path, const std::string& reason) {
  if (!reason.empty())
    core::fail_usage({.what = fmt::format("checkpoint '{}' has the name of another step: {}", path, reason),
                      .expected = "the name of its own step, by which checkpoints are ordered",
                      .fix = "rename it, or move it away"});
}

std::string checkpoints_in(const std::string& run_dir) { return (fs::path{run_dir} / "checkpoints").string(); }

std::string folder_meant(const std::string& path) {
  std::error_code error;
  return fs::is_directory(checkpoints_in(path), error) ? checkpoints_in(path) : path;
}

bool is_link(const std::string& path) {
  std::error_code error;
  return fs::is_symlink(fs::symlink_status(without_slash(path), error));
}

std::string absence_of(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) return ": there is no such folder";
  return fs::is_regular_file(status) ? ": it is a file" : "";
}

std::vector<std::string> find_checkpoints(const std::string& path) {
  const std::string folder = folder_meant(path);
  if (folder == path && is_checkpoint(path)) return {path};
  return list_checkpoints(folder);
}

std::vector<std::string> require_checkpoints(const std::string& path, std::string_view where) {
  std::vector<std::string> paths = find_checkpoints(path);
  if (!paths.empty()) return paths;
  std::error_code error;
  const std::string weights = (fs::path{path} / "weights.h5").string();
  const bool has_weights = fs::is_regular_file(weights, error);
  const std::string absence = absence_of(path);
  core::fail_usage({.what = fmt::format("there is no checkpoint in '{}'{}", path, absence),
                    .where = std::string{where},
                    .expected = "a run's folder, or a checkpoint in its folder checkpoints",
                    .fix = absence.empty()
                               ? fmt::format("lockstep train --save-every N writes them{}",
                                             has_weights ? fmt::format("; its weights are in '{}'", weights) : "")
                               : "check the name"});
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
    } else if (!is_link(folder)) {
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
  const std::string folder = fs::path{newest}.parent_path().string();
  const auto tell_once = [&](const std::string& path, const std::string& text) {
    if (told.insert(path).second) core::log_warning(text);
  };
  if (is_link(folder))
    return tell_once(
        folder, fmt::format("no checkpoint in '{}' is removed: nothing is removed through a symbolic link", folder));
  for (const std::string& path : list_links(folder))
    if (is_newer(newest, path)) tell_once(path, left_alone_text(path, foreign_reason(path)));
  std::size_t n_done = 1;
  bool has_sound = !is_newer(newest, name_of(n_sound_steps));
  for (const std::string& path : list_checkpoints(folder)) {
    if (!is_newer(newest, path)) continue;
    if (const std::string reason = foreign_reason(path); !reason.empty()) {
      tell_once(path, left_alone_text(path, reason));
      continue;
    }
    if (const std::string reason = misnamed_reason(path); !reason.empty()) {
      tell_once(path, fmt::format("'{}' is left alone: {}", path, reason));
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
