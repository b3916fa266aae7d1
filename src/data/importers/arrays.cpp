#include "data/importers/arrays.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "core/error.hpp"
#include "core/printable.hpp"
#include "core/suggest.hpp"

namespace lockstep::data {
namespace {

constexpr std::uint64_t block_bytes = std::uint64_t{1} << 20;
constexpr std::uint64_t most_classes = std::uint64_t{1} << 16;

/// Calls `f(first, rows)` for all rows, in pieces of about 1 MiB.
template <class F>
void for_pieces(const RowArray& array, F&& f) {
  const std::uint64_t piece_rows = std::max<std::uint64_t>(1, block_bytes / array.row_bytes());
  std::vector<std::byte> piece;
  for (std::uint64_t first = 0; first < array.n_rows(); first += piece_rows) {
    const std::uint64_t n = std::min(piece_rows, array.n_rows() - first);
    piece.resize(n * array.row_bytes());
    array.read_rows(first, n, piece);
    f(std::span<const std::byte>{piece});
  }
}

/// Calls `f(value)` for each of the elements of type T in `data`.
template <class T, class F>
void for_values(std::span<const std::byte> data, F&& f) {
  for (std::size_t at = 0; at < data.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, &data[at], sizeof(T));
    f(value);
  }
}

/// The labels that occur, as far as they may be classes.
struct Labels {
  std::vector<bool> is_used = std::vector<bool>(most_classes);
  std::uint64_t n_classes = 0;  ///< the largest and one

  /// False if a value is not a class.
  bool add(const RowArray& y) {
    bool all_classes = true;
    for_pieces(y, [&](std::span<const std::byte> piece) {
      core::visit(y.row().dtype, [&]<class T>(std::type_identity<T>) {
        if constexpr (std::is_integral_v<T>) {
          for_values<T>(piece, [&](T value) { all_classes = all_classes && add_value(value); });
        }
      });
    });
    return all_classes;
  }

 private:
  template <class T>
  bool add_value(T value) {
    if (!std::in_range<std::uint16_t>(value)) return false;
    const auto label = std::size_t{static_cast<std::make_unsigned_t<T>>(value)};
    is_used[label] = true;
    n_classes = std::max<std::uint64_t>(n_classes, label + 1);
    return true;
  }
};

std::string describe_row(const ArraySpec& row) {
  return fmt::format("{} [{}]", core::name(row.dtype), fmt::join(row.shape, ", "));
}

void check_same_row(const RowArray& array, const RowArray& first) {
  if (array.row() == first.row()) return;
  core::fail_usage({.what = fmt::format("samples of {} differ from those of another split", describe_row(array.row())),
                    .where = array.place(),
                    .expected = fmt::format("{}, as in {}", describe_row(first.row()), first.place()),
                    .fix = "write both with one type and shape"});
}

void check_pairs(const std::vector<ArrayPair>& pairs) {
  for (const ArrayPair& pair : pairs) {
    if (pair.x->n_rows() != pair.y->n_rows()) {
      const std::vector<std::uint64_t>& shape = pair.x->row().shape;
      const bool may_be_turned = !shape.empty() && shape.back() == pair.y->n_rows();
      core::fail_usage({.what = fmt::format("{} labels or targets", pair.y->n_rows()),
                        .where = pair.y->place(),
                        .expected = fmt::format("{}, one per sample of {}", pair.x->n_rows(), pair.x->place()),
                        .fix = may_be_turned ? "x may be transposed, as MATLAB, Julia, R and Fortran write it: store "
                                               "it with the samples first, in Python x.T"
                                             : "give an x and a y that belong together"});
    }
    check_same_row(*pair.x, *pairs.front().x);
    check_same_row(*pair.y, *pairs.front().y);
  }
}

class ArraySource final : public Source {
 public:
  ArraySource(std::vector<ArrayPair> pairs, ArrayOptions options)
      : pairs_{std::move(pairs)}, remarks_{std::move(options.remarks)}, kept_{std::move(options.kept)} {
    check_pairs(pairs_);
    spec_.x = pairs_.front().x->row();
    spec_.y = pairs_.front().y->row();
    doubt_layout();
    tell_scale();
    const bool may_be_classes = !core::is_floating(spec_.y.dtype) && spec_.y.n_elements() == 1;
    if (!options.words.empty())
      name_classes(options.words);
    else if (may_be_classes && !options.no_classes)
      find_classes(options.least_classes);
    else if (core::is_floating(spec_.y.dtype) && spec_.y.n_elements() == 1 && !options.no_classes)
      doubt_targets();
    doubt_one_hot();
  }

  [[nodiscard]] const SetSpec& spec() const override { return spec_; }

  [[nodiscard]] std::vector<SourceSplit> splits() const override {
    std::vector<SourceSplit> splits;
    for (const ArrayPair& pair : pairs_) splits.push_back({pair.split, pair.x->n_rows()});
    return splits;
  }

  void read(std::size_t split, std::uint64_t first, std::uint64_t n, std::span<std::byte> x,
            std::span<std::byte> y) override {
    const ArrayPair& pair = pairs_.at(split);
    pair.x->read_rows(first, n, x);
    if (pair.y->row().dtype == spec_.y.dtype && sorted_.empty())
      pair.y->read_rows(first, n, y);
    else
      read_labels(*pair.y, first, n, y);
  }

  [[nodiscard]] std::vector<Remark> remarks() const override { return remarks_; }

 private:
  // Most arrays of images have 1, 3 or 4 channels, and more rows and columns than that.
  void doubt_layout() {
    constexpr std::uint64_t most_channels = 4;
    const std::vector<std::uint64_t>& shape = spec_.x.shape;
    if (shape.size() != 3) return;
    const bool is_image = spec_.x.dtype == core::DType::uint8;
    if (is_image && shape[0] <= most_channels && shape[2] > most_channels)
      remarks_.push_back(
          warning(fmt::format("x, uint8, is taken as images of {} rows, {} columns and {} channels: if channels come "
                              "first, store it as samples x rows x columns x channels",
                              shape[0], shape[1], shape[2])));
    if (!is_image && shape[2] <= most_channels && shape[0] > most_channels)
      remarks_.push_back(
          warning(fmt::format("x, {}, is taken as {} channels of {} x {}: if channels come last, store it as samples x "
                              "channels x rows x columns",
                              core::name(spec_.x.dtype), shape[0], shape[1], shape[2])));
  }

  // What is loaded is value / 255 of uint8, and the value itself of all others.
  void tell_scale() {
    const std::uint64_t n_x = spec_.x.n_elements(), n_y = spec_.y.n_elements();
    if (n_y > n_x)
      remarks_.push_back(
          warning(fmt::format("y has {} numbers per sample and x has {}: check that they are not swapped", n_y, n_x)));
    const bool is_image = spec_.x.shape.size() >= 2, is_bytes = spec_.x.dtype == core::DType::uint8;
    if (is_bytes && !is_image)
      remarks_.push_back(
          assumed("x, uint8, is taken as levels: training divides them by 255, unless they are ids; store numbers in "
                  "another type"));
    if (!is_bytes && is_image && !core::is_floating(spec_.x.dtype))
      remarks_.push_back(
          assumed(fmt::format("x, {}, is taken as numbers; only levels in uint8 are divided by 255 in "
                              "training",
                              core::name(spec_.x.dtype))));
  }

  // Whoever has no integers at hand, as in MATLAB, writes classes as floats.
  void doubt_targets() {
    bool all_whole = true;
    double most = 0;
    for (const ArrayPair& pair : pairs_) {
      for_pieces(*pair.y, [&](std::span<const std::byte> piece) {
        core::visit(spec_.y.dtype, [&]<class T>(std::type_identity<T>) {
          if constexpr (std::is_floating_point_v<T>) {
            for_values<T>(piece, [&](T value) {
              all_whole = all_whole && value >= 0 && value < T{most_classes} && value == std::trunc(value);
              most = std::max(most, static_cast<double>(value));
            });
          } else {
            all_whole = false;
          }
        });
      });
      if (!all_whole) return;
    }
    remarks_.push_back(
        assumed(fmt::format("labels: {}, all of them whole numbers up to {:.0f}, kept as numbers; for classes, store "
                            "them as integers",
                            core::name(spec_.y.dtype), most)));
  }

  // As Keras and others want them: to us they are as many targets.
  void doubt_one_hot() {
    const std::uint64_t n = spec_.y.n_elements();
    if (n < 2) return;
    bool is_one_hot = true;
    for (const ArrayPair& pair : pairs_) {
      for_pieces(*pair.y, [&](std::span<const std::byte> piece) {
        core::visit(spec_.y.dtype, [&]<class T>(std::type_identity<T>) {
          std::uint64_t at = 0, n_ones = 0;
          for_values<T>(piece, [&](T value) {
            const auto number = static_cast<float>(value);
            n_ones += number == 1 ? 1 : 0;
            is_one_hot = is_one_hot && (number == 0 || number == 1) && (++at % n != 0 || n_ones == at / n);
          });
        });
      });
      if (!is_one_hot) return;
    }
    remarks_.push_back(
        assumed(fmt::format("labels: {} numbers each, one of them 1 and the others 0, kept as targets; for classes, "
                            "store the index of the 1 (argmax)",
                            n)));
  }

  // Names and texts are no classes.
  void doubt_names(std::uint64_t n_used) {
    constexpr std::uint64_t enough_to_doubt = 10;
    std::uint64_t n_samples = 0;
    for (const ArrayPair& pair : pairs_) n_samples += pair.y->n_rows();
    if (n_used == n_samples && n_samples >= enough_to_doubt)
      remarks_.push_back(warning("each sample has a class of its own: see that y is no name or number of the sample"));
  }

  void name_classes(const std::vector<std::string>& words) {
    spec_.y = {.dtype = label_dtype(words.size()), .shape = {}};
    spec_.classes = words;
    std::sort(spec_.classes.begin(), spec_.classes.end());
    for (const std::string& word : words) {
      const auto at = std::lower_bound(spec_.classes.begin(), spec_.classes.end(), word);
      sorted_.push_back(static_cast<std::uint64_t>(at - spec_.classes.begin()));
    }
    doubt_names(words.size());
    constexpr std::size_t most_shown = 10;
    const auto shown = std::span{std::as_const(spec_.classes)}.first(std::min(most_shown, words.size()));
    remarks_.push_back(
        assumed(fmt::format("labels: {} words taken as classes in sorted order: {}{}", words.size(),
                            core::printable(core::join(shown)), shown.size() < words.size() ? ", ..." : "")));
  }

  void find_classes(std::uint64_t least_classes) {
    Labels labels;
    for (const ArrayPair& pair : pairs_) {
      if (labels.add(*pair.y)) continue;
      remarks_.push_back(
          warning(fmt::format("the labels of {} have integers outside 0 to {}: kept as {}, not taken as classes",
                              pair.split, most_classes - 1, core::name(spec_.y.dtype))));
      return;
    }
    const std::uint64_t n_classes = std::max(labels.n_classes, least_classes);
    spec_.y = {.dtype = label_dtype(n_classes), .shape = {}};
    spec_.classes = numbered_classes(n_classes);
    if (least_classes == 0)
      remarks_.push_back(
          assumed(fmt::format("labels: whole numbers up to {} taken as {} class{}; --no-classes keeps them as numbers",
                              n_classes - 1, n_classes, n_classes == 1 ? "" : "es")));
    const auto n_used = static_cast<std::uint64_t>(std::count(labels.is_used.begin(), labels.is_used.end(), true));
    if (n_used < n_classes)
      remarks_.push_back(warning(fmt::format("{} of {} classes {} no sample", n_classes - n_used, n_classes,
                                             n_classes - n_used == 1 ? "has" : "have")));
    doubt_names(n_used);
    if (n_used == 1) remarks_.push_back(warning("all samples are of one class"));
  }

  /// Reads the integers of the file and stores them in the type of the spec.
  void read_labels(const RowArray& array, std::uint64_t first, std::uint64_t n, std::span<std::byte> y) const {
    std::vector<std::byte> wide(n * array.row_bytes());
    array.read_rows(first, n, wide);
    core::visit(array.row().dtype, [&]<class From>(std::type_identity<From>) {
      if constexpr (std::is_integral_v<From>) store_labels<From>(wide, y);
    });
  }

  template <class From>
  void store_labels(std::span<const std::byte> wide, std::span<std::byte> y) const {
    core::visit(spec_.y.dtype, [&]<class To>(std::type_identity<To>) {
      if constexpr (std::is_unsigned_v<To>) {
        std::byte* out = y.data();
        for_values<From>(wide, [&](From value) {
          const auto number = static_cast<std::make_unsigned_t<From>>(value);
          const To label = static_cast<To>(sorted_.empty() ? number : sorted_.at(number));
          std::memcpy(out, &label, sizeof(To));
          out += sizeof(To);
        });
      }
    });
  }

  std::vector<ArrayPair> pairs_;
  std::vector<Remark> remarks_;
  std::vector<Spool> kept_;
  std::vector<std::uint64_t> sorted_{};  ///< where labels are words: the class of each
  SetSpec spec_;
};

}  // namespace

RowArray::RowArray(std::string place, core::DType dtype, const std::vector<std::uint64_t>& dimensions)
    : place_{std::move(place)}, row_bytes_{core::size_of(dtype)} {
  const auto fail = [&](const char* what) {
    core::fail_usage({.what = fmt::format("{}: shape [{}]", what, fmt::join(dimensions, ", ")),
                      .where = place_,
                      .expected = "samples along the first dimension, and at least one number in each",
                      .fix = "write the array with one row per sample"});
  };
  if (dimensions.empty()) fail("a single number, not an array");
  if (std::find(dimensions.begin(), dimensions.end(), 0) != dimensions.end()) fail("an empty array");
  n_rows_ = dimensions.front();
  row_ = {.dtype = dtype, .shape = {dimensions.begin() + 1, dimensions.end()}};
  std::uint64_t room = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / row_bytes_;
  for (const std::uint64_t dimension : dimensions) {
    if (dimension > room) fail("an array larger than any file");
    room /= dimension;
  }
  for (const std::uint64_t dimension : row_.shape) row_bytes_ *= dimension;
}

InputArray::InputArray(Input input, std::uint64_t offset, core::DType dtype,
                       const std::vector<std::uint64_t>& dimensions)
    : RowArray{input.name(), dtype, dimensions}, input_{std::move(input)}, offset_{offset} {
  const std::uint64_t found = input_.size() - std::min(offset_, input_.size());
  if (found == bytes()) return;
  core::fail_usage(
      {.what = fmt::format("{} bytes of data, {}", found, found < bytes() ? "truncated" : "more than the header says"),
       .where = fmt::format("{}, from byte {} on", place(), offset_),
       .expected = fmt::format("{} bytes: {} samples of {}", bytes(), n_rows(), describe_row(row())),
       .fix = "fetch or write the file again"});
}

void InputArray::read_rows(std::uint64_t first, std::uint64_t n, std::span<std::byte> data) const {
  core::require(first <= n_rows() && n <= n_rows() - first && data.size() == n * row_bytes(),
                "rows are read within the array");
  input_.read_at(offset_ + first * row_bytes(), data);
}

std::unique_ptr<Source> make_array_source(std::vector<ArrayPair> pairs, ArrayOptions options) {
  return std::make_unique<ArraySource>(std::move(pairs), std::move(options));
}

std::vector<std::string> numbered_classes(std::uint64_t n) {
  std::vector<std::string> classes;
  for (std::uint64_t i = 0; i < n; ++i) classes.push_back(std::to_string(i));
  return classes;
}

}  // namespace lockstep::data
