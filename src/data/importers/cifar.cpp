// The binary versions of CIFAR-10 and CIFAR-100: records of label(s) and a planar 32x32 image, nothing before or after.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <sstream>

#include "core/error.hpp"
#include "data/importers/arrays.hpp"
#include "data/importers/importers.hpp"
#include "io/file.hpp"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t n_image_pixels = 32 * 32;
constexpr std::uint64_t n_channels = 3;
constexpr std::uint64_t image_bytes = n_image_pixels * n_channels;
constexpr std::uint64_t piece_records = 256;

/// What differs between the two sets.
struct CifarKind {
  const char* subfolder;  ///< of the archive the set comes in
  std::vector<std::string> train;
  std::string test;
  const char* class_names;  ///< a file with one name a line
  std::uint64_t n_classes;
  std::uint64_t n_labels;  ///< bytes before an image; the last is the label that is used

  [[nodiscard]] std::uint64_t record_bytes() const { return n_labels + image_bytes; }
};

CifarKind cifar10() {
  return {"cifar-10-batches-bin",
          {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"},
          "test_batch.bin",
          "batches.meta.txt",
          10,
          1};
}

CifarKind cifar100() { return {"cifar-100-binary", {"train.bin"}, "test.bin", "fine_label_names.txt", 100, 2}; }

struct RecordFile {
  io::File file;
  std::uint64_t first = 0;  ///< number of its first record in the split
  std::uint64_t n_records = 0;
};

struct RecordSplit {
  std::string name;
  std::uint64_t n_samples = 0;
  std::vector<RecordFile> files{};
};

/// Planes to pixels: red, green and blue of a pixel side by side.
void interleave(std::span<const std::byte> planes, std::span<std::byte> pixels) {
  for (std::uint64_t i = 0; i < n_image_pixels; ++i) {
    for (std::uint64_t c = 0; c < n_channels; ++c) pixels[i * n_channels + c] = planes[c * n_image_pixels + i];
  }
}

std::vector<std::string> read_class_names(const fs::path& path, std::uint64_t n_classes) {
  if (!is_there(path)) return numbered_classes(n_classes);
  std::istringstream text{io::read_text(path.string(), {std::uint64_t{1} << 16})};
  std::vector<std::string> names;
  for (std::string line; std::getline(text, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!line.empty()) names.push_back(line);
  }
  if (names.size() != n_classes) {
    core::fail_usage({.what = fmt::format("{} class names", names.size()),
                      .where = path.string(),
                      .expected = fmt::format("{}, one a line", n_classes),
                      .fix = "fetch the file again, or remove it: classes are then numbers"});
  }
  return names;
}

class CifarSource final : public Source {
 public:
  CifarSource(const fs::path& folder, CifarKind kind) : kind_{std::move(kind)} {
    spec_.x = {.dtype = core::DType::uint8, .shape = {32, 32, n_channels}};
    spec_.classes = read_class_names(folder / kind_.class_names, kind_.n_classes);
    add_split(folder, "train", kind_.train);
    add_split(folder, "val", {kind_.test});
    if (!splits_.empty()) return;
    core::fail_usage({.what = is_there(folder) ? "no CIFAR files in it" : "no such folder",
                      .where = folder.string(),
                      .expected = fmt::format("{} or {} in it", kind_.train.front(), kind_.test),
                      .fix = "unpack the archive of the binary version (not the one for Python) and give its folder"});
  }

  [[nodiscard]] const SetSpec& spec() const override { return spec_; }

  [[nodiscard]] std::vector<SourceSplit> splits() const override {
    std::vector<SourceSplit> splits;
    for (const RecordSplit& split : splits_) splits.push_back({split.name, split.n_samples});
    return splits;
  }

  void read(std::size_t split, std::uint64_t first, std::uint64_t n, std::span<std::byte> x,
            std::span<std::byte> y) override {
    for (const RecordFile& file : splits_.at(split).files) {
      const std::uint64_t begin = std::max(first, file.first);
      const std::uint64_t end = std::min(first + n, file.first + file.n_records);
      for (std::uint64_t at = begin; at < end; at += piece_records) {
        const std::uint64_t n_now = std::min(piece_records, end - at);
        read_records(file, at - file.first, x.subspan((at - first) * image_bytes, n_now * image_bytes),
                     y.subspan(at - first, n_now));
      }
    }
  }

  [[nodiscard]] std::vector<std::string> remarks() const override { return remarks_; }

 private:
  void add_split(const fs::path& folder, const char* name, const std::vector<std::string>& files) {
    RecordSplit split{.name = name};
    std::vector<std::string> missing;
    for (const std::string& file : files) {
      if (!is_there(folder / file)) {
        missing.push_back(file);
        continue;
      }
      split.files.push_back(open_file((folder / file).string(), split.n_samples));
      split.n_samples += split.files.back().n_records;
    }
    if (split.files.empty()) return;
    for (const std::string& file : missing) remarks_.push_back(fmt::format("{} is not there and left out", file));
    splits_.push_back(std::move(split));
  }

  [[nodiscard]] RecordFile open_file(const std::string& path, std::uint64_t first) const {
    io::File file{path};
    const std::uint64_t size = file.size().value;
    if (size == 0 || size % kind_.record_bytes() != 0) {
      core::fail_usage(
          {.what = fmt::format("{} bytes, {} past the last whole record", size, size % kind_.record_bytes()),
           .where = path,
           .expected = fmt::format("a multiple of {} bytes", kind_.record_bytes()),
           .fix = "fetch the file again: it is truncated or no CIFAR file"});
    }
    return {std::move(file), first, size / kind_.record_bytes()};
  }

  void read_records(const RecordFile& file, std::uint64_t first, std::span<std::byte> x, std::span<std::byte> y) const {
    std::vector<std::byte> records(y.size() * kind_.record_bytes());
    const std::uint64_t offset = first * kind_.record_bytes();
    file.file.read_at(offset, records);
    for (std::size_t i = 0; i < y.size(); ++i) {
      const auto record = std::span{records}.subspan(i * kind_.record_bytes(), kind_.record_bytes());
      y[i] = record[kind_.n_labels - 1];
      if (std::to_integer<std::uint64_t>(y[i]) >= kind_.n_classes)
        fail_label(file, offset + i * kind_.record_bytes() + kind_.n_labels - 1, std::to_integer<unsigned>(y[i]));
      interleave(record.subspan(kind_.n_labels), x.subspan(i * image_bytes, image_bytes));
    }
  }

  [[noreturn]] void fail_label(const RecordFile& file, std::uint64_t offset, unsigned label) const {
    core::fail_usage(
        {.what = fmt::format("label {}", label),
         .where = fmt::format("{}, byte {}, record {}", file.file.path(), offset, offset / kind_.record_bytes()),
         .expected = fmt::format("0 to {}", kind_.n_classes - 1),
         .fix = "fetch the file again: it is damaged, or of another set"});
  }

  CifarKind kind_;
  SetSpec spec_;
  std::vector<RecordSplit> splits_{};
  std::vector<std::string> remarks_{};
};

/// `path`, or the folder of the archive below it.
std::unique_ptr<Source> open_cifar(const std::string& path, CifarKind kind) {
  const fs::path below = fs::path{path} / kind.subfolder;
  return std::make_unique<CifarSource>(is_there(below) ? below : fs::path{path}, std::move(kind));
}

}  // namespace

std::unique_ptr<Source> open_cifar10(const std::string& path, const ImportOptions& /*options*/) {
  return open_cifar(path, cifar10());
}

std::unique_ptr<Source> open_cifar100(const std::string& path, const ImportOptions& /*options*/) {
  return open_cifar(path, cifar100());
}

}  // namespace lockstep::data
