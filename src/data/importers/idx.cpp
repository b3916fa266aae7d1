// The IDX format of MNIST: magic number, big-endian dimensions, bytes. Class names are not in the files, so classes are
// numbers: ten, or more if the labels reach further (EMNIST).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "core/error.hpp"
#include "core/suggest.hpp"
#include "data/format/known_formats.hpp"
#include "data/importers/arrays.hpp"
#include "data/importers/importers.hpp"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t least_classes = 10;

/// "train-images-idx3-ubyte", also with a point before "idx" and with ".gz": those that exist.
std::vector<std::string> find_files(const std::string& folder, const std::string& stem, std::size_t n_dimensions) {
  std::vector<std::string> found;
  for (const char* joint : {"-", "."}) {
    for (const char* ending : {"", ".gz"}) {
      const fs::path path = fs::path{folder} / fmt::format("{}{}idx{}-ubyte{}", stem, joint, n_dimensions, ending);
      if (is_there(path)) found.push_back(path.string());
    }
  }
  return found;
}

std::uint32_t read_big_endian(const Input& input, std::uint64_t offset) {
  std::array<std::byte, 4> bytes{};
  input.read_at(offset, bytes);
  std::uint32_t value = 0;
  for (const std::byte byte : bytes) value = value << 8 | std::to_integer<std::uint32_t>(byte);
  return value;
}

std::unique_ptr<RowArray> open_array(const std::string& path, std::size_t n_dimensions, SharedSpools* spools) {
  Input input{path, spools};
  const std::uint32_t expected = 0x800U | static_cast<std::uint32_t>(n_dimensions);  // 8: unsigned bytes
  const std::uint32_t magic = read_big_endian(input, 0);
  if (magic != expected) {
    std::vector<std::byte> head(std::min<std::uint64_t>(input.size(), known_format_bytes));
    input.read_at(0, head);
    refuse_other_format(head, path, fmt::format("IDX, unsigned bytes, {} dimension(s)", n_dimensions));
    core::fail_usage({.what = fmt::format("magic number {:#010x}", magic),
                      .where = fmt::format("{}, byte 0", path),
                      .expected = fmt::format("{:#010x}: IDX, unsigned bytes, {} dimension(s)", expected, n_dimensions),
                      .fix = "fetch the file again, or check that images and labels are not swapped"});
  }
  std::vector<std::uint64_t> dimensions;
  for (std::size_t i = 0; i < n_dimensions; ++i) dimensions.push_back(read_big_endian(input, 4 + 4 * i));
  return std::make_unique<InputArray>(std::move(input), 4 + 4 * n_dimensions, core::DType::uint8, dimensions);
}

struct IdxSet {
  std::vector<ArrayPair> pairs{};
  std::vector<Remark> remarks{};
};

/// Opens the first; a remark names the others.
std::unique_ptr<RowArray> open_first(const std::vector<std::string>& files, std::size_t n_dimensions, IdxSet& set,
                                     SharedSpools* spools) {
  const auto name_of = [](const std::string& path) { return fs::path{path}.filename().string(); };
  for (std::size_t i = 1; i < files.size(); ++i)
    set.remarks.push_back(left_out(fmt::format("{}, as {} is read", name_of(files[i]), name_of(files.front()))));
  return open_array(files.front(), n_dimensions, spools);
}

void add_pair(IdxSet& set, const std::string& folder, const std::string& prefix, const char* split,
              SharedSpools* spools) {
  const std::vector<std::string> images = find_files(folder, prefix + "-images", 3);
  const std::vector<std::string> labels = find_files(folder, prefix + "-labels", 1);
  if (images.empty() != labels.empty()) {
    const bool has_images = labels.empty();
    const std::string missing = prefix + (has_images ? "-labels-idx1-ubyte" : "-images-idx3-ubyte");
    core::fail_usage({.what = has_images ? "images without labels" : "labels without images",
                      .where = has_images ? images.front() : labels.front(),
                      .expected = fmt::format("{}[.gz] beside it", missing),
                      .fix = "put both files there, or neither"});
  }
  if (images.empty()) return;
  auto x = open_first(images, 3, set, spools);
  auto y = open_first(labels, 1, set, spools);
  if (prefix != split) set.remarks.push_back(assumed(fmt::format("{} is the split {}", prefix, split)));
  set.pairs.push_back({split, std::move(x), std::move(y)});
}

IdxSet open_pairs_in(const std::string& folder, SharedSpools* spools) {
  IdxSet set;
  add_pair(set, folder, "train", "train", spools);
  add_pair(set, folder, "t10k", "val", spools);
  return set;
}

bool has_idx(const std::string& folder) {
  for (const char* prefix : {"train", "t10k"})
    if (!find_files(folder, std::string{prefix} + "-images", 3).empty() ||
        !find_files(folder, std::string{prefix} + "-labels", 1).empty())
      return true;
  return false;
}

/// `path`, or the one folder below it where torchvision has put a set's files; empty if there is none.
std::string find_folder(const std::string& path) {
  if (has_idx(path)) return path;
  std::vector<std::string> found;
  for (const char* below : {"raw", "MNIST/raw", "FashionMNIST/raw", "KMNIST/raw"})
    if (const std::string folder = (fs::path{path} / below).string(); has_idx(folder)) found.push_back(folder);
  if (found.size() > 1)
    core::fail_usage({.what = "several sets",
                      .where = path,
                      .expected = "one set in the folder: " + core::join(found),
                      .fix = "give the folder of one of them"});
  return found.empty() ? "" : found.front();
}

bool has_npz(const std::string& path) {
  std::error_code error;
  for (fs::directory_iterator entry{path, error}, end; !error && entry != end; entry.increment(error))
    if (entry->path().extension() == ".npz") return true;
  return false;
}

}  // namespace

std::unique_ptr<Source> open_idx(const std::string& path, const ImportOptions& options) {
  const std::string folder = find_folder(path);
  if (folder.empty()) {
    core::fail_usage({.what = !is_there(path)          ? "no such folder"
                              : fs::is_directory(path) ? "no IDX files in it"
                                                       : "a file, not its folder",
                      .where = path,
                      .expected = "train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-... in it, plain or .gz",
                      .fix = has_npz(path) ? fmt::format("for .npz files: lockstep shard import npy {}", path)
                                           : "give the folder the files were fetched to, under their original names"});
  }
  IdxSet set = open_pairs_in(folder, options.spools);
  return make_array_source(std::move(set.pairs), {.least_classes = least_classes, .remarks = std::move(set.remarks)});
}

}  // namespace lockstep::data
