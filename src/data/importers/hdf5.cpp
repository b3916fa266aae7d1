// HDF5 files with data sets x and y, as h5py users write them; see pair_names.hpp for names of several splits.
#include "io/hdf5.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "data/importers/importers.hpp"
#include "data/importers/pair_names.hpp"
#include "data/importers/words.hpp"

namespace lockstep::data {
namespace {

/// Data set names without the "/" of the root.
std::string strip(const std::string& name) { return !name.empty() && name.front() == '/' ? name.substr(1) : name; }

core::DType checked_dtype(const io::Hdf5Dataset& dataset, const std::string& place) {
  if (const auto dtype = dataset.dtype()) return *dtype;
  core::fail_usage({.what = dataset.describe_elements(),
                    .where = place,
                    .expected = "integers of 8 to 64 bits, float16, bfloat16, float32 or float64",
                    .fix = "write the data set as plain numbers, classes as 0, 1, 2, ..."});
}

class DatasetArray final : public RowArray {
 public:
  /// The file is kept open as long as any of its arrays.
  DatasetArray(std::shared_ptr<const io::Hdf5File> file, io::Hdf5Dataset dataset, const std::string& place)
      : RowArray{place, checked_dtype(dataset, place), dataset.dimensions()},
        file_{std::move(file)},
        dataset_{std::move(dataset)} {
    dataset_.require_substance();
  }

  void read_rows(std::uint64_t first, std::uint64_t n, std::span<std::byte> data) const override {
    dataset_.read_rows(first, n, data);
  }

 private:
  std::shared_ptr<const io::Hdf5File> file_;
  io::Hdf5Dataset dataset_;
};

std::unique_ptr<RowArray> make_words(std::shared_ptr<const io::Hdf5File> file, io::Hdf5Dataset dataset,
                                     const std::string& place, std::shared_ptr<WordList> words) {
  const auto kept = std::make_shared<const io::Hdf5Dataset>(std::move(dataset));
  const auto read = [file = std::move(file), kept](std::uint64_t first, std::uint64_t n) {
    return kept->read_texts(first, n);
  };
  return std::make_unique<WordArray>(place, kept->dimensions(), read, std::move(words));
}

}  // namespace

std::unique_ptr<Source> open_hdf5(const std::string& path, const ImportOptions& options) {
  const auto others = options.allow_external_files ? io::OtherFiles::followed : io::OtherFiles::refused;
  const auto file = std::make_shared<const io::Hdf5File>(io::Hdf5File::open(path, others));
  std::vector<std::string> names;
  for (const std::string& name : file->dataset_names()) names.push_back(strip(name));
  const auto words = std::make_shared<WordList>();
  const auto open = [&](const std::string& name, bool is_label) -> std::unique_ptr<RowArray> {
    io::Hdf5Dataset dataset = file->open_dataset("/" + name);
    const std::string place = fmt::format("{}, data set /{}", path, name);
    if (is_label && dataset.is_text()) return make_words(file, std::move(dataset), place, words);
    return std::make_unique<DatasetArray>(file, std::move(dataset), place);
  };
  std::vector<ArrayPair> pairs;
  const auto has = [&](const std::string& name) { return file->has_dataset("/" + name); };
  for (const PairNames& pair : find_pairs(names, has, strip(options.x_name), strip(options.y_name), path)) {
    auto x = open(pair.x, false);
    auto y = open(pair.y, true);
    pairs.push_back({pair.split, std::move(x), std::move(y)});
  }
  return make_word_source(std::move(pairs), *words, options.no_classes);
}

}  // namespace lockstep::data
