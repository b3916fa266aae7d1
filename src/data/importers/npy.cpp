// NumPy's files: an .npz archive with arrays x and y (or arr_0 and arr_1, NumPy's names for arrays without one), or a
// folder with x.npy and y.npy; see pair_names.hpp for names of several splits.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "core/error.hpp"
#include "data/importers/arrays.hpp"
#include "data/importers/importers.hpp"
#include "data/importers/npy_header.hpp"
#include "data/importers/pair_names.hpp"
#include "data/importers/zip_archive.hpp"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view ending = ".npy";

std::unique_ptr<RowArray> make_array(Input input) {
  const NpyHeader header = read_npy_header(input);
  return std::make_unique<InputArray>(std::move(input), header.bytes, header.dtype, header.shape);
}

/// The names of .npy files or members, without the ending.
void add_name(std::vector<std::string>& names, const std::string& file) {
  if (file.size() > ending.size() && std::string_view{file}.substr(file.size() - ending.size()) == ending)
    names.push_back(file.substr(0, file.size() - ending.size()));
}

std::vector<std::string> names_in_folder(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::recursive_directory_iterator at{folder, error}, end; !error && at != end; at.increment(error)) {
    if (at.depth() > 0) at.disable_recursion_pending();
    add_name(names, at->path().lexically_relative(folder).generic_string());
  }
  if (error) {
    core::fail_usage({.what = fmt::format("cannot be listed: {}", error.message()),
                      .where = folder.string(),
                      .expected = "an .npz file or a folder with .npy files",
                      .fix = "give a path that is there and readable"});
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<PairNames> find_npz_pairs(const std::vector<std::string>& names, const ImportOptions& options,
                                      const std::string& path) {
  const auto has = [&](const char* name) { return std::find(names.begin(), names.end(), name) != names.end(); };
  const bool is_unnamed = has("arr_0") && has("arr_1") && !has("x") && options.x_name == "x" && options.y_name == "y";
  return is_unnamed ? find_pairs(names, "arr_0", "arr_1", path)
                    : find_pairs(names, options.x_name, options.y_name, path);
}

using OpenArray = std::function<std::unique_ptr<RowArray>(const std::string& name)>;

std::unique_ptr<Source> make_source(const std::vector<PairNames>& names, const ImportOptions& options,
                                    const OpenArray& open) {
  std::vector<ArrayPair> pairs;
  for (const PairNames& pair : names) {
    auto x = open(pair.x);
    auto y = open(pair.y);
    pairs.push_back({pair.split, std::move(x), std::move(y)});
  }
  return make_array_source(std::move(pairs), {.no_classes = options.no_classes});
}

std::unique_ptr<Source> open_npz(const std::string& path, const ImportOptions& options) {
  const ZipArchive archive{path};
  std::vector<std::string> names;
  for (const std::string& member : archive.member_names()) add_name(names, member);
  return make_source(find_npz_pairs(names, options, path), options, [&](const std::string& name) {
    return make_array(archive.unpack(name + std::string{ending}, options.spools));
  });
}

}  // namespace

std::unique_ptr<Source> open_npy(const std::string& path, const ImportOptions& options) {
  if (is_file(path) && path.ends_with(ending))
    core::fail_usage({.what = fmt::format("'{}' is one array", path),
                      .where = "lockstep shard import npy",
                      .expected = fmt::format("a folder with {}{} and {}{}, or an .npz file with both", options.x_name,
                                              ending, options.y_name, ending),
                      .fix = "name the folder"});
  if (is_file(path)) return open_npz(path, options);
  return make_source(
      find_pairs(names_in_folder(path), options.x_name, options.y_name, path), options, [&](const std::string& name) {
        return make_array(Input{(fs::path{path} / (name + std::string{ending})).string(), options.spools});
      });
}

}  // namespace lockstep::data
