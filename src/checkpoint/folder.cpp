#include "checkpoint/folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <system_error>

#include "core/log.hpp"

namespace lockstep::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "step-";

bool is_name(std::string_view name) {
  return name.size() > prefix.size() && name.starts_with(prefix) &&
         std::ranges::all_of(name.substr(prefix.size()), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_done(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(fs::path{path} / done_name, error);
}

}  // namespace

std::string name_of(std::uint64_t n_steps) { return fmt::format("{}{:09}", prefix, n_steps); }

std::string file_name_of(int rank) { return fmt::format("rank-{:05}.h5", rank); }

bool is_checkpoint(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(fs::path{path} / index_name, error) || is_done(path);
}

std::vector<std::string> list_checkpoints(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::directory_iterator entry{folder, error}, end; !error && entry != end; entry.increment(error))
    if (is_name(entry->path().filename().string()) && entry->is_directory(error))
      paths.push_back(entry->path().string());
  std::ranges::sort(paths, [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() > b.size() : a > b;  // of more than nine digits, too
  });
  return paths;
}

std::string checkpoints_in(const std::string& run_dir) { return (fs::path{run_dir} / "checkpoints").string(); }

std::vector<std::string> find_checkpoints(const std::string& path) {
  std::error_code error;
  if (is_checkpoint(path)) return {path};
  return list_checkpoints(fs::is_directory(checkpoints_in(path), error) ? checkpoints_in(path) : path);
}

// DONE first, so that half of it is nothing that anybody would read.
void remove_checkpoint(const std::string& path) {
  fs::remove(fs::path{path} / done_name);
  fs::remove_all(path);
}

void remove_old(const std::string& folder, std::size_t n_kept) noexcept {
  std::size_t n_done = 0;
  for (const std::string& path : list_checkpoints(folder)) {
    try {
      if (n_done >= n_kept) remove_checkpoint(path);
      n_done += is_done(path) ? 1 : 0;
    } catch (const std::exception& error) {
      core::log_warning(fmt::format("'{}' is left behind: {}", path, error.what()));
    }
  }
}

}  // namespace lockstep::checkpoint
