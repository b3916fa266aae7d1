#include "core/result_path.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "core/error.hpp"

namespace lockstep::core {
namespace {

namespace fs = std::filesystem;

std::string folder_of(const std::string& path) {
  const std::string folder = fs::path{behind_links(path)}.parent_path().string();
  return folder.empty() ? "." : folder;
}

}  // namespace

std::string behind_links(const std::string& path) {
  constexpr int most_links = 40;
  fs::path file = path;
  std::error_code ignored;
  for (int i = 0; i < most_links && fs::is_symlink(fs::symlink_status(file, ignored)); ++i)
    file = file.parent_path() / fs::read_symlink(file, ignored);  // an absolute target replaces what is before it
  return file.string();
}

bool is_shard_set(const std::string& folder) {
  constexpr std::string_view begin = "{\n  \"format\": \"lockstep-shards\"";
  std::ifstream manifest{fs::path{folder} / "manifest.json", std::ios::binary};
  std::string text(begin.size(), '\0');
  return manifest.read(text.data(), static_cast<std::streamsize>(text.size())) && text == begin;
}

void refuse_in_shard_set(const std::string& path, std::string_view flag) {
  const std::string folder = folder_of(path);
  if (!is_shard_set(folder)) return;
  fail_usage({.what = fmt::format("'{}' would lie in a set of shards", path),
              .where = std::string{flag},
              .expected = "a place outside of sets: their manifests vouch for what is in them",
              .fix = fmt::format("name a place outside of '{}'", folder)});
}

}  // namespace lockstep::core
