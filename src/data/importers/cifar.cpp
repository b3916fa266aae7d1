// CIFAR-10 and CIFAR-100: the binary versions, records of label(s) and a planar 32x32 image with nothing before or
// after; and those for Python, pickles (see cifar_pickle.hpp).
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <sstream>

#include "core/error.hpp"
#include "data/importers/arrays.hpp"
#include "data/importers/cifar_pickle.hpp"
#include "data/importers/importers.hpp"
#include "io/file.hpp"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t n_image_pixels = 32 * 32;
constexpr std::uint64_t n_channels = 3;
constexpr std::uint64_t image_bytes = n_image_pixels * n_channels;
constexpr std::uint64_t piece_records = 256;

/// What a version of a set is made of.
struct CifarFiles {
  const char* subfolder;  ///< of the archive the set comes in
  std::vector<std::string> train;
  std::string test;
  const char* class_names;  ///< a file with one name a line, or a pickle
};

/// What differs between the two sets.
struct CifarKind {
  CifarFiles binary;
  CifarFiles pickled;
  const char* labels_key;  ///< of pickles
  const char* names_key;
  std::uint64_t n_classes;
  std::uint64_t n_labels;  ///< bytes before an image of the binary version; the last is the label that is used
};

CifarKind cifar10() {
  return {{"cifar-10-batches-bin",
           {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"},
           "test_batch.bin",
           "batches.meta.txt"},
          {"cifar-10-batches-py",
           {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5"},
           "test_batch",
           "batches.meta"},
          "labels",
          "label_names",
          10,
          1};
}

CifarKind cifar100() {
  return {{"cifar-100-binary", {"train.bin"}, "test.bin", "fine_label_names.txt"},
          {"cifar-100-python", {"train"}, "test", "meta"},
          "fine_labels",
          "fine_label_names",
          100,
          2};
}

/// A file whose images lie at equal distances.
struct RecordFile {
  Input input;
  std::uint64_t first = 0;  ///< number of its first record in the split
  std::uint64_t n_records = 0;
  std::uint64_t offset = 0;         ///< of the first record
  std::uint64_t n_labels = 0;       ///< bytes of a record before the image
  std::vector<std::byte> labels{};  ///< of all records, if there are none before the images
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

bool has_split(const fs::path& folder, const CifarFiles& files) {
  const auto is_in_folder = [&](const std::string& name) { return is_file(folder / name); };
  return is_in_folder(files.test) || std::any_of(files.train.begin(), files.train.end(), is_in_folder);
}

/// A version of the set that is there.
struct CifarCopy {
  const CifarFiles* files;
  fs::path folder;  ///< "" or that of the archive, within the input
};

/// In `path` and in the folders of the archives below it; the first of them is read.
std::vector<CifarCopy> find_copies(const fs::path& path, const CifarKind& kind) {
  std::vector<CifarCopy> found;
  for (const CifarFiles* files : {&kind.binary, &kind.pickled})
    for (const fs::path& folder : {fs::path{}, fs::path{files->subfolder}})
      if (has_split(path / folder, *files)) found.push_back({files, folder});
  return found;
}

/// The first file of a copy that is there.
std::string first_file(const fs::path& path, const CifarCopy& copy) {
  std::vector<std::string> names = copy.files->train;
  names.push_back(copy.files->test);
  const auto first = std::ranges::find_if(names, [&](const auto& name) { return is_file(path / copy.folder / name); });
  return (copy.folder / *first).string();
}

class CifarSource final : public Source {
 public:
  CifarSource(const fs::path& path, CifarKind kind) : kind_{std::move(kind)} {
    spec_.x = {.dtype = core::DType::uint8, .shape = {32, 32, n_channels}};
    const std::vector<CifarCopy> copies = find_copies(path, kind_);
    if (copies.empty())
      core::fail_usage(
          {.what = is_there(path) ? "no CIFAR files in it" : "no such folder",
           .where = path.string(),
           .expected = fmt::format("{0} or {1} (binary version), or {2} or {3} (for Python), in it or in {4} or {5}",
                                   kind_.binary.train.front(), kind_.binary.test, kind_.pickled.train.front(),
                                   kind_.pickled.test, kind_.binary.subfolder, kind_.pickled.subfolder),
           .fix = "unpack the archive and give its folder"});
    const fs::path folder = path / copies.front().folder, names = folder / copies.front().files->class_names;
    if (!is_there(names))
      remarks_.push_back(assumed(fmt::format("{} does not exist: classes are numbers", names.filename().string())));
    if (kind_.n_labels > 1) remarks_.push_back(left_out("the coarse labels: classes are the fine ones"));
    if (copies.front().files == &kind_.binary) {
      spec_.classes = read_class_names(names, kind_.n_classes);
      add_splits(folder, kind_.binary, [this](const std::string& file) { return open_binary(file); });
    } else {
      spec_.classes = is_there(names) ? read_pickled_names(names.string(), kind_.names_key, kind_.n_classes)
                                      : numbered_classes(kind_.n_classes);
      add_splits(folder, kind_.pickled, [this](const std::string& file) { return open_pickled(file); });
    }
    for (std::size_t i = 1; i < copies.size(); ++i)
      remarks_.push_back(left_out(fmt::format("a second copy of the set ({}, ...), as {} is read",
                                              first_file(path, copies[i]), first_file(path, copies.front()))));
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

  [[nodiscard]] std::vector<Remark> remarks() const override { return remarks_; }

 private:
  template <class Open>
  void add_splits(const fs::path& folder, const CifarFiles& files, Open&& open) {
    add_split(folder, "train", files.train, open);
    add_split(folder, "val", {files.test}, open);
    if (splits_.back().name == "val") remarks_.push_back(assumed(files.test + " is the split val"));
  }

  template <class Open>
  void add_split(const fs::path& folder, const char* name, const std::vector<std::string>& files, Open&& open) {
    RecordSplit split{.name = name};
    std::vector<std::string> missing;
    for (const std::string& file : files) {
      if (!is_there(folder / file)) {
        missing.push_back(file);
        continue;
      }
      split.files.push_back(open((folder / file).string()));
      split.files.back().first = split.n_samples;
      split.n_samples += split.files.back().n_records;
    }
    if (split.files.empty()) return;
    for (const std::string& file : missing)
      remarks_.push_back(warning(fmt::format("{} does not exist and is left out", file)));
    splits_.push_back(std::move(split));
  }

  [[nodiscard]] RecordFile open_binary(const std::string& path) const {
    Input input{path};
    const std::uint64_t record_bytes = kind_.n_labels + image_bytes;
    const std::uint64_t size = input.size();
    if (size == 0 || size % record_bytes != 0) {
      core::fail_usage({.what = size == 0
                                    ? "an empty file"
                                    : fmt::format("{} bytes, {} past the last whole record", size, size % record_bytes),
                        .where = path,
                        .expected = fmt::format("records of {} bytes, at least one", record_bytes),
                        .fix = "fetch the file again: it is truncated or not a CIFAR file"});
    }
    return {.input = std::move(input), .n_records = size / record_bytes, .n_labels = kind_.n_labels};
  }

  [[nodiscard]] RecordFile open_pickled(const std::string& path) const {
    PickledBatch batch = read_pickled_batch(path, kind_.labels_key, kind_.n_classes, image_bytes);
    const std::uint64_t n = batch.labels.size();
    return {.input = std::move(batch.input), .n_records = n, .offset = batch.offset, .labels = std::move(batch.labels)};
  }

  void read_records(const RecordFile& file, std::uint64_t first, std::span<std::byte> x, std::span<std::byte> y) const {
    const std::uint64_t record_bytes = file.n_labels + image_bytes;
    std::vector<std::byte> records(y.size() * record_bytes);
    const std::uint64_t offset = file.offset + first * record_bytes;
    file.input.read_at(offset, records);
    for (std::size_t i = 0; i < y.size(); ++i) {
      const auto record = std::span{records}.subspan(i * record_bytes, record_bytes);
      y[i] = file.labels.empty() ? record[file.n_labels - 1] : file.labels[first + i];
      if (std::to_integer<std::uint64_t>(y[i]) >= kind_.n_classes)
        fail_label(file, offset + i * record_bytes + file.n_labels - 1, std::to_integer<unsigned>(y[i]));
      interleave(record.subspan(file.n_labels), x.subspan(i * image_bytes, image_bytes));
    }
  }

  [[noreturn]] void fail_label(const RecordFile& file, std::uint64_t offset, unsigned label) const {
    core::fail_usage({.what = fmt::format("label {}", label),
                      .where = fmt::format("{}, byte {}, record {}", file.input.name(), offset,
                                           offset / (file.n_labels + image_bytes)),
                      .expected = fmt::format("0 to {}", kind_.n_classes - 1),
                      .fix = "fetch the file again: it is damaged, or of another set"});
  }

  CifarKind kind_;
  SetSpec spec_;
  std::vector<RecordSplit> splits_{};
  std::vector<Remark> remarks_{};
};

}  // namespace

std::unique_ptr<Source> open_cifar10(const std::string& path, const ImportOptions& /*options*/) {
  return std::make_unique<CifarSource>(path, cifar10());
}

std::unique_ptr<Source> open_cifar100(const std::string& path, const ImportOptions& /*options*/) {
  return std::make_unique<CifarSource>(path, cifar100());
}

}  // namespace lockstep::data
