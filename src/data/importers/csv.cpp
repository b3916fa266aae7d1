// Text files with numbers in columns, separated by commas, semicolons or tabs (whichever the first line has).
// x becomes float32 [columns]; y becomes float32 [], or a class if all of it is written as integers from 0 to 65535:
// "3" is a class, "3.0" a number, as is "3" with --no-classes; a remark says which, and why. If the first y is no
// number, all are words, and classes.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/printable.hpp"
#include "data/importers/arrays.hpp"
#include "data/importers/csv_columns.hpp"
#include "data/importers/importers.hpp"
#include "data/importers/text.hpp"
#include "data/importers/words.hpp"

namespace lockstep::data {
namespace {

constexpr std::int64_t largest_class = 65535;
constexpr std::uint64_t piece_rows = 4096;
constexpr char line_end = '\n';

class CsvParser {
 public:
  CsvParser(const std::string& path, const ImportOptions& options)
      : path_{path}, options_{options}, lines_{path}, are_classes_{!options.no_classes} {}

  std::unique_ptr<Source> parse() {
    const auto first = lines_.next();
    if (!first) fail("no lines", path_, "numbers in columns", "give a file with data");
    find_columns(*first);
    std::vector<Spool> spools = take_spools(options_.spools, 4, [&] { return parse_rows(); });
    if (const std::string no_class = text_of(spools[3]); !no_class.empty())
      remarks_.push_back(warning(fmt::format("y is taken as numbers, not as classes: {}, no whole number from 0 to {}",
                                             no_class, largest_class)));
    return make_source(std::move(spools));
  }

 private:
  /// Of x, float32; of y: uint16 where all are classes, else float32; of the words that y has, a line each; and where
  /// the first y is that is no class.
  std::vector<Spool> parse_rows() {
    SpoolWriter x, y, words;
    if (!options_.has_header) add_row(x, y);
    while (const auto line = lines_.next()) {
      split(*line);
      add_row(x, y);
    }
    if (n_rows_ == 0) fail("no line behind the header", path_, "numbers in columns", "give a file with data");
    Spool numbers = std::move(y).finish();
    for (const std::string& word : words_.list()) {
      words.append(std::as_bytes(std::span{word}));
      words.append(std::as_bytes(std::span{&line_end, 1}));
    }
    SpoolWriter no_class;
    no_class.append(std::as_bytes(std::span{no_class_}));
    return make_spools(std::move(x).finish(), are_classes_ ? to_labels(numbers) : std::move(numbers),
                       std::move(words).finish(), std::move(no_class).finish());
  }

  void find_columns(std::string_view line) {
    separator_ = line.find(',') != std::string_view::npos ? "," : line.find(';') != std::string_view::npos ? ";" : "\t";
    split(line);
    n_columns_ = fields_.size();
    if (n_columns_ < 2)
      fail("one column", lines_.place(), "x and y, separated by ',', ';' or a tab", "see that it is a CSV file");
    if (options_.has_header) names_.assign(fields_.all.begin(), fields_.all.end());
    columns_ = select_columns(options_, names_, n_columns_);
    const auto is_number = [this](std::size_t column) { return parse_float(fields_[column]).has_value(); };
    if (options_.has_header && std::ranges::all_of(columns_.x, is_number))
      remarks_.push_back(
          warning(fmt::format("{} has numbers for {} and was taken as names; --no-header takes it as data",
                              lines_.place(), is_number(columns_.y) ? "x and y" : "x")));
    if (options_.y_column.empty())
      remarks_.push_back(note(fmt::format("y is column {}{}, the last; --y-column names another", columns_.y,
                                          names_.empty() ? "" : fmt::format(" ({})", core::printable(names_.back())))));
    if (std::find(columns_.x.begin(), columns_.x.end(), columns_.y) != columns_.x.end())
      remarks_.push_back(warning(fmt::format("column {} is y and also in x: a model sees the answer", columns_.y)));
    row_.resize(columns_.x.size());
  }

  void split(std::string_view line) {
    if (!split_fields(line, separator_, fields_))
      fail("a quote without an end, or with something behind it", lines_.place(), "fields in whole quotes or in none",
           "correct the line");
    if (n_columns_ != 0 && fields_.size() != n_columns_)
      fail(fmt::format("{} columns", fields_.size()), lines_.place(),
           fmt::format("{}, as in the first line", n_columns_), "correct the line");
  }

  void add_row(SpoolWriter& x, SpoolWriter& y) {
    for (std::size_t i = 0; i < row_.size(); ++i) row_[i] = number(columns_.x[i]);
    const std::string_view label = fields_[columns_.y];
    if (n_rows_ == 0) are_words_ = are_classes_ && !label.empty() && !parse_float(label);
    const float target = are_words_ ? words_.number(label, [&] { return place(columns_.y); }) : number(columns_.y);
    if (are_classes_ && !are_words_) {
      const auto number = parse_integer(label);
      are_classes_ = number && *number >= 0 && *number <= largest_class;
      if (!are_classes_) no_class_ = fmt::format("{} has {}", lines_.place(), in_quotes(label));
    }
    x.append(std::as_bytes(std::span{row_}));
    y.append(std::as_bytes(std::span{&target, 1}));
    ++n_rows_;
  }

  float number(std::size_t column) const {
    if (const auto value = parse_float(fields_[column])) return *value;
    fail(fmt::format("{} is no number", in_quotes(fields_[column])), place(column), "a number that float32 can hold",
         n_rows_ == 0 && !options_.has_header ? "leave out --no-header if these are names"
         : column == columns_.y && options_.no_classes
             ? "leave out --no-classes, as words are classes; or choose another --y-column"
             : "correct it, leave the line out, or choose other columns (\"nan\" is taken, but a network that meets it "
               "learns nothing)");
  }

  [[nodiscard]] std::string place(std::size_t column) const {
    const std::string name = names_.empty() ? "" : fmt::format(" ({})", core::printable(names_[column]));
    return fmt::format("{}, column {}{}", lines_.place(), column, name);
  }

  /// The sizes of the spools tell how many rows there are and whether labels are classes.
  std::unique_ptr<Source> make_source(std::vector<Spool> spools) {
    Spool x = std::move(spools[0]), y = std::move(spools[1]);
    spools.erase(spools.begin(), spools.begin() + 2);
    const std::uint64_t n_rows = x.size() / (columns_.x.size() * sizeof(float));
    const auto y_dtype = y.size() == n_rows * sizeof(std::uint16_t) ? core::DType::uint16 : core::DType::float32;
    std::vector<ArrayPair> pairs(1);
    pairs[0].split = "train";
    pairs[0].x = std::make_unique<InputArray>(Input{path_ + ", columns of x", std::move(x)}, 0, core::DType::float32,
                                              std::vector<std::uint64_t>{n_rows, columns_.x.size()});
    pairs[0].y = std::make_unique<InputArray>(Input{path_ + ", column of y", std::move(y)}, 0, y_dtype,
                                              std::vector<std::uint64_t>{n_rows});
    const std::string words = text_of(spools[0]);
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < words.size(); at += lines.back().size() + 1)
      lines.push_back(words.substr(at, words.find(line_end, at) - at));
    return make_array_source(std::move(pairs),
                             {.words = std::move(lines), .remarks = std::move(remarks_), .kept = std::move(spools)});
  }

  [[nodiscard]] static std::string text_of(const Spool& spool) {
    std::string text(spool.size(), '\0');
    spool.read_at(0, std::as_writable_bytes(std::span{text}));
    return text;
  }

  /// The same labels as uint16.
  [[nodiscard]] Spool to_labels(const Spool& numbers) const {
    SpoolWriter labels;
    std::vector<float> piece;
    for (std::uint64_t first = 0; first < n_rows_; first += piece.size()) {
      piece.resize(std::min(n_rows_ - first, piece_rows));
      numbers.read_at(first * sizeof(float), std::as_writable_bytes(std::span{piece}));
      const std::vector<std::uint16_t> narrow(piece.begin(), piece.end());
      labels.append(std::as_bytes(std::span{narrow}));
    }
    return std::move(labels).finish();
  }

  [[noreturn]] static void fail(const std::string& what, const std::string& where, const std::string& expected,
                                const std::string& fix) {
    core::fail_usage({.what = what, .where = where, .expected = expected, .fix = fix});
  }

  std::string path_;
  ImportOptions options_;
  LineReader lines_;
  std::string_view separator_ = ",";
  std::size_t n_columns_ = 0;
  std::vector<std::string> names_{};
  std::vector<Remark> remarks_{};
  CsvColumns columns_{};
  Fields fields_{};
  std::vector<float> row_{};
  std::uint64_t n_rows_ = 0;
  bool are_classes_;
  bool are_words_ = false;
  WordList words_{};
  std::string no_class_{};
};

}  // namespace

std::unique_ptr<Source> open_csv(const std::string& path, const ImportOptions& options) {
  return CsvParser{path, options}.parse();
}

}  // namespace lockstep::data
