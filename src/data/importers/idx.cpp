// The IDX format of MNIST: magic number, big-endian dimensions, bytes. Class names are not in the files, so classes are
// numbers: ten, or more if the labels reach further (EMNIST).
#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <optional>

#include "core/error.hpp"
#include "data/importers/arrays.hpp"
#include "data/importers/importers.hpp"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t least_classes = 10;

/// "train-images-idx3-ubyte", also with a point before "idx" and with ".gz"; the first that is there.
std::optional<std::string> find_file(const std::string& folder, const std::string& stem, std::size_t n_dimensions) {
  for (const char* joint : {"-", "."}) {
    for (const char* ending : {"", ".gz"}) {
      const fs::path path = fs::path{folder} / fmt::format("{}{}idx{}-ubyte{}", stem, joint, n_dimensions, ending);
      if (is_there(path)) return path.string();
    }
  }
  return std::nullopt;
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
    core::fail_usage({.what = fmt::format("magic number {:#010x}", magic),
                      .where = fmt::format("{}, byte 0", path),
                      .expected = fmt::format("{:#010x}: IDX, unsigned bytes, {} dimension(s)", expected, n_dimensions),
                      .fix = "fetch the file again, or see that images and labels are not swapped"});
  }
  std::vector<std::uint64_t> dimensions;
  for (std::size_t i = 0; i < n_dimensions; ++i) dimensions.push_back(read_big_endian(input, 4 + 4 * i));
  return std::make_unique<InputArray>(std::move(input), 4 + 4 * n_dimensions, core::DType::uint8, dimensions);
}

void add_pair(std::vector<ArrayPair>& pairs, const std::string& folder, const std::string& prefix, const char* split,
              SharedSpools* spools) {
  const auto images = find_file(folder, prefix + "-images", 3);
  const auto labels = find_file(folder, prefix + "-labels", 1);
  if (images.has_value() != labels.has_value()) {
    const std::string missing = images ? prefix + "-labels-idx1-ubyte" : prefix + "-images-idx3-ubyte";
    core::fail_usage({.what = fmt::format("{} without {}", images ? "images" : "labels", images ? "labels" : "images"),
                      .where = images ? *images : *labels,
                      .expected = fmt::format("{}[.gz] beside it", missing),
                      .fix = "put both files there, or neither"});
  }
  if (!images) return;
  auto x = open_array(*images, 3, spools);
  auto y = open_array(*labels, 1, spools);
  pairs.push_back({split, std::move(x), std::move(y)});
}

}  // namespace

std::unique_ptr<Source> open_idx(const std::string& path, const ImportOptions& options) {
  std::vector<ArrayPair> pairs;
  add_pair(pairs, path, "train", "train", options.spools);
  add_pair(pairs, path, "t10k", "val", options.spools);
  if (pairs.empty()) {
    core::fail_usage({.what = !is_there(path)          ? "no such folder"
                              : fs::is_directory(path) ? "no IDX files in it"
                                                       : "a file, where its folder is wanted",
                      .where = path,
                      .expected = "train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-... in it, plain or .gz",
                      .fix = "give the folder the files were fetched to, under their original names"});
  }
  return make_array_source(std::move(pairs), {.least_classes = least_classes});
}

}  // namespace lockstep::data
