// HDF5 files with data sets x and y, as users of h5py and MATLAB write them; see pair_names.hpp for several splits.
#include "io/hdf5.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "data/importers/importers.hpp"
#include "data/importers/matlab.hpp"
#include "data/importers/pair_names.hpp"
#include "data/importers/words.hpp"

namespace lockstep::data {
namespace {

/// Data set names without the "/" of the root.
std::string strip(const std::string& name) { return !name.empty() && name.front() == '/' ? name.substr(1) : name; }

/// Those with a block of another program before them are for the library to find.
bool is_hdf5(const std::string& path) {
  constexpr std::string_view signature = "\x89HDF\r\n\x1a\n";
  const io::File file{path};
  std::string head(std::min<std::uint64_t>(file.size().value, signature.size()), '\0');
  file.read_at(0, std::as_writable_bytes(std::span{head}));
  return head == signature;
}

core::DType checked_dtype(const io::Hdf5Dataset& dataset, const std::string& place) {
  if (const auto dtype = dataset.dtype()) return *dtype;
  core::fail_usage({.what = dataset.describe_elements(),
                    .where = place,
                    .expected = "integers of 8 to 64 bits, float16, bfloat16, float32 or float64",
                    .fix = "write the data set as plain numbers, classes as 0, 1, 2, ..."});
}

/// Rows as they lie in the file.
class DatasetArray final : public RowArray {
 public:
  /// The file is kept open as long as any of its arrays.
  DatasetArray(std::shared_ptr<const io::Hdf5File> file, io::Hdf5Dataset dataset, const std::string& place)
      : RowArray{place, checked_dtype(dataset, place), dataset.dimensions()},
        file_{std::move(file)},
        dataset_{std::move(dataset)} {}

  void read_rows(std::uint64_t first, std::uint64_t n, std::span<std::byte> data) const override {
    dataset_.read_rows(first, n, data);
  }

 private:
  std::shared_ptr<const io::Hdf5File> file_;
  io::Hdf5Dataset dataset_;
};

/// An array of MATLAB's.
class MatlabArray final : public RowArray {
 public:
  MatlabArray(std::shared_ptr<const io::Hdf5File> file, io::Hdf5Dataset dataset, const std::string& place,
              SamplesAlong along, bool is_label)
      : RowArray{place, checked_dtype(dataset, place), matlab_dimensions(dataset.dimensions(), along, is_label)},
        file_{std::move(file)},
        dataset_{std::move(dataset)},
        along_{along} {
    require_matlab_numbers(dataset_, place);
  }

  void read_rows(std::uint64_t first, std::uint64_t n, std::span<std::byte> data) const override {
    if (n > 0) read_matlab(dataset_, along_, first, n, data);
  }

 private:
  std::shared_ptr<const io::Hdf5File> file_;
  io::Hdf5Dataset dataset_;
  SamplesAlong along_;
};

std::unique_ptr<RowArray> make_words(std::shared_ptr<const io::Hdf5File> file, io::Hdf5Dataset dataset,
                                     const std::string& place, std::shared_ptr<WordList> words) {
  const auto kept = std::make_shared<const io::Hdf5Dataset>(std::move(dataset));
  const auto read = [file = std::move(file), kept](std::uint64_t first, std::uint64_t n) {
    return kept->read_texts(first, n);
  };
  return std::make_unique<WordArray>(place, kept->dimensions(), read, std::move(words));
}

class Hdf5Importer {
 public:
  Hdf5Importer(const std::string& path, const ImportOptions& options)
      : path_{path}, options_{options}, is_matlab_{is_matlab_file(path)} {
    if (!is_matlab_ && !is_hdf5(path)) refuse_other_format(path, "an HDF5 file");
    const auto others = options.allow_external_files ? io::OtherFiles::followed : io::OtherFiles::refused;
    file_ = std::make_shared<const io::Hdf5File>(io::Hdf5File::open_foreign(path, others));
  }

  std::unique_ptr<Source> open() {
    std::vector<std::string> names;
    for (const std::string& name : file_->dataset_names()) names.push_back(strip(name));
    const auto has = [&](const std::string& name) { return file_->has_dataset("/" + name); };
    const std::vector<PairNames> found = find_pairs(names, has, strip(options_.x_name), strip(options_.y_name), path_);
    std::vector<ArrayPair> pairs;
    for (const PairNames& pair : found) pairs.push_back(open_pair(pair));
    for (Remark& remark : remarks_on_names(names, found)) remarks_.push_back(std::move(remark));
    return make_word_source(std::move(pairs), *words_,
                            {.no_classes = options_.no_classes, .remarks = std::move(remarks_)});
  }

 private:
  ArrayPair open_pair(const PairNames& names) {
    io::Hdf5Dataset x = open_written(names.x), y = open_written(names.y);
    if (!is_matlab_) return {names.split, make(std::move(x), names.x, false), make(std::move(y), names.y, true)};
    const MatlabPair along = match_matlab(x.dimensions(), y.dimensions());
    return {names.split, make_matlab(std::move(x), names.x, along.x, false),
            make_matlab(std::move(y), names.y, along.y, true)};
  }

  io::Hdf5Dataset open_written(const std::string& name) {
    io::Hdf5Dataset dataset = file_->open_dataset("/" + name);
    const std::string filled =
        dataset.require_written(options_.allow_unwritten ? io::Unwritten::fill_value : io::Unwritten::refused);
    for (const char* attribute : {"scale_factor", "add_offset", "_FillValue", "missing_value", "_Unsigned",
                                  "valid_range", "valid_min", "valid_max"})  // of netCDF
      if (dataset.has_attribute(attribute))
        remarks_.push_back(
            warning(fmt::format("{}: its attribute {} is not applied, values are taken as stored", name, attribute)));
    if (!filled.empty()) remarks_.push_back(assumed(fmt::format("{}: {}", name, filled)));
    return dataset;
  }

  std::unique_ptr<RowArray> make(io::Hdf5Dataset dataset, const std::string& name, bool is_label) {
    if (is_label && dataset.is_text()) return make_words(file_, std::move(dataset), place_of(name), words_);
    return std::make_unique<DatasetArray>(file_, std::move(dataset), place_of(name));
  }

  std::unique_ptr<RowArray> make_matlab(io::Hdf5Dataset dataset, const std::string& name, SamplesAlong along,
                                        bool is_label) {
    const io::Dimensions in_file = dataset.dimensions();
    auto array = std::make_unique<MatlabArray>(file_, std::move(dataset), place_of(name), along, is_label);
    remarks_.push_back(changed(describe_matlab(name, in_file, matlab_dimensions(in_file, along, is_label))));
    return array;
  }

  [[nodiscard]] std::string place_of(const std::string& name) const {
    return fmt::format("{}, data set /{}", path_, name);
  }

  std::string path_;
  const ImportOptions& options_;
  bool is_matlab_;
  std::shared_ptr<const io::Hdf5File> file_;
  std::shared_ptr<WordList> words_ = std::make_shared<WordList>();
  std::vector<Remark> remarks_{};
};

}  // namespace

std::unique_ptr<Source> open_hdf5(const std::string& path, const ImportOptions& options) {
  return Hdf5Importer{path, options}.open();
}

}  // namespace lockstep::data
