// Text files with numbers in columns, separated by commas, semicolons or tabs (whichever the first line has). x becomes
// float32 [columns]; y becomes float32 [], or a class if all of it is written as integers from 0 to 65535: "3" is a
// class, "3.0" a number, as is "3" with --no-classes; a remark says which, and why. If the first y is not a number, all
// are words, and classes. Columns of x that number the rows are left out if their name, or its lack, says so.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "core/printable.hpp"
#include "data/format/names.hpp"
#include "data/importers/arrays.hpp"
#include "data/importers/csv_columns.hpp"
#include "data/importers/csv_doubts.hpp"
#include "data/importers/importers.hpp"
#include "data/importers/text.hpp"
#include "data/importers/words.hpp"

namespace lockstep::data {
namespace {

constexpr std::int64_t largest_class = 65535;
constexpr std::uint64_t piece_rows = 4096;
constexpr std::uint64_t enough_rows = 10;  // that a column which numbers them is doubted whatever its name
constexpr char line_end = '\n';
constexpr std::array<std::string_view, 3> separators{",", ";", "\t"};
constexpr std::array<std::string_view, 3> separator_names{"commas", "semicolons", "tabs"};

void append_line(SpoolWriter& spool, const std::string& line) {
  spool.append(std::as_bytes(std::span{line}));
  spool.append(std::as_bytes(std::span{&line_end, 1}));
}

std::vector<std::string> lines_of(const Spool& spool) {
  std::string text(spool.size(), '\0');
  spool.read_at(0, std::as_writable_bytes(std::span{text}));
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size(); at += lines.back().size() + 1)
    lines.push_back(text.substr(at, text.find(line_end, at) - at));
  return lines;
}

class CsvParser {
 public:
  CsvParser(const std::string& path, const ImportOptions& options)
      : path_{path}, options_{options}, lines_{path}, are_classes_{!options.no_classes} {}

  std::unique_ptr<Source> parse() {
    auto first = lines_.next();
    if (first && take_separator(*first)) first = lines_.next();
    if (!first) fail("no lines", path_, "numbers in columns", "give a file with data");
    find_columns(*first);
    return make_source(take_spools(options_.spools, 4, [&] { return parse_rows(); }));
  }

 private:
  /// Returns four spools: x as float32; y as uint16 if all are classes, else as float32; the words that y has, a line
  /// each; and the number of columns of x with what is to be said about them, a line each.
  std::vector<Spool> parse_rows() {
    SpoolWriter x, y, words, facts;
    if (!options_.has_header) add_row(x, y);
    while (const auto line = lines_.next()) {
      split(*line);
      add_row(x, y);
    }
    if (n_rows_ == 0) fail("no line after the header", path_, "numbers in columns", "give a file with data");
    Spool numbers = std::move(y).finish();
    for (const std::string& word : words_.list()) append_line(words, word);
    std::vector<Remark> found;
    for (Remark& remark : remarks_on_columns(seen_, seen_y_, n_rows_, separator_ == ";"))
      found.push_back(std::move(remark));
    doubt_y_that_numbers_rows(found);
    Spool kept = leave_out_row_numbers(std::move(x).finish(), found);
    if (n_numbers_ > 0)
      found.push_back(
          warning(fmt::format("y is taken as words, as that of the first row is: {} of {} {}, such as {}", n_numbers_,
                              n_rows_, n_numbers_ == 1 ? "is a number" : "are numbers", number_)));
    for (Remark& remark : words_.remarks()) found.push_back(std::move(remark));
    if (!no_class_.empty())
      found.push_back(warning(fmt::format("y is taken as numbers, not as classes: {}, not a whole number from 0 to {}",
                                          no_class_, largest_class)));
    append_line(facts, std::to_string(seen_.size()));
    for (const Remark& remark : found) append_line(facts, line_of(remark));
    return make_spools(std::move(kept), are_classes_ ? to_labels(numbers) : std::move(numbers),
                       std::move(words).finish(), std::move(facts).finish());
  }

  /// Whether it is Excel's line "sep=;", which says what separates the columns.
  bool take_separator(std::string_view line) {
    constexpr std::string_view before = "sep=";
    if (!line.starts_with(before)) return false;
    const auto named = std::ranges::find(separators, line.substr(before.size()));
    if (named == separators.end()) return false;
    separator_ = *named;
    remarks_.push_back(note(fmt::format("line {} says that '{}' separates columns", lines_.number(), separator_)));
    return true;
  }

  /// The one that is there most often, outside of quotes.
  static std::string_view guess_separator(std::string_view line) {
    std::array<std::size_t, separators.size()> n{};
    bool is_quoted = false;
    for (const char c : line) {
      if (c == '"') is_quoted = !is_quoted;
      const auto found = std::ranges::find(separators, std::string_view{&c, 1});
      if (!is_quoted && found != separators.end()) ++n[static_cast<std::size_t>(found - separators.begin())];
    }
    return separators[static_cast<std::size_t>(std::ranges::max_element(n) - n.begin())];
  }

  void find_columns(std::string_view line) {
    const bool is_guess = separator_.empty();
    if (is_guess) separator_ = guess_separator(line);
    split(line);
    n_columns_ = fields_.size();
    first_ = line;
    if (n_columns_ < 2)
      fail("one column", lines_.place(),
           fmt::format("x and y, separated by {}", is_guess ? "commas, semicolons or tabs" : separator_name()),
           line.starts_with('#')                      ? "remove comment lines"
           : line.find('|') != std::string_view::npos ? "write commas for the '|' between columns"
           : line.find(' ') != std::string_view::npos ? "write commas for the blanks between columns"
                                                      : "check that it is a CSV file");
    if (options_.has_header)
      for (const std::string_view name : fields_.all) names_.push_back(composed(trim(name)));
    columns_ = select_columns(options_, names_, n_columns_);
    const auto is_number = [this](std::size_t column) { return parse_float(fields_[column]).has_value(); };
    if (options_.has_header && std::ranges::all_of(columns_.x, is_number))
      remarks_.push_back(
          warning(fmt::format("line {} has numbers for {} and was taken as names; --no-header takes it as data",
                              lines_.number(), is_number(columns_.y) ? "x and y" : "x")));
    if (options_.y_column.empty())
      remarks_.push_back(
          assumed(fmt::format("y is column {}{}, the last; --y-column names another", columns_.y,
                              names_.empty() ? "" : fmt::format(" ({})", core::printable(names_.back())))));
    remarks_.push_back(assumed(fmt::format("{} columns, separated by {}", n_columns_, separator_name())));
    if (std::find(columns_.x.begin(), columns_.x.end(), columns_.y) != columns_.x.end())
      remarks_.push_back(warning(fmt::format("column {} is y and also in x: a model sees the answer", columns_.y)));
    row_.resize(columns_.x.size());
    for (const std::size_t column : columns_.x) seen_.push_back({.shown = shown(column)});
    seen_y_.shown = shown(columns_.y);
  }

  void split(std::string_view line) {
    if (!split_fields(line, separator_, fields_))
      fail("a quote that does not end, or has text after it", lines_.place(),
           "fields that are quoted as a whole, or not at all", "correct the line");
    if (n_columns_ != 0 && fields_.size() != n_columns_)
      fail(
          fmt::format("{} column{}, separated by {}", fields_.size(), fields_.size() == 1 ? "" : "s", separator_name()),
          lines_.place(), fmt::format("{}, as in the first line", n_columns_), fix_of_width(line));
  }

  [[nodiscard]] std::string_view separator_name() const { return called(separator_); }
  static std::string_view called(std::string_view separator) {
    return separator_names[static_cast<std::size_t>(std::ranges::find(separators, separator) - separators.begin())];
  }

  static std::size_t n_fields(std::string_view line, std::string_view separator) {
    Fields fields;
    return split_fields(line, separator, fields) ? fields.size() : 0;
  }

  /// For a line that has other columns than the first one.
  [[nodiscard]] std::string fix_of_width(std::string_view line) const {
    const std::string_view other = guess_separator(line);
    const std::size_t n = n_fields(line, other);
    if (fields_.size() == 1 && n > 1 && n_fields(first_, other) != n)
      return fmt::format("the first line has {}, this one {}: write one of them throughout", separator_name(),
                         called(other));
    const bool has_one_more = fields_.size() == n_columns_ + 1;
    if (has_one_more && fields_.all.back().empty()) return "remove the separator at the end of the line";
    if (has_one_more && n_rows_ == 0 && options_.has_header)
      return "if R's write.table made the file, put an empty name (\"\") before the others in the first line: a column "
             "without a name that numbers the rows is left out; or correct the line";
    return fmt::format(
        "correct the line; if other than {} separate columns, begin the file with a line that says so, "
        "such as sep=;",
        separator_name());
  }

  void add_row(SpoolWriter& x, SpoolWriter& y) {
    for (std::size_t i = 0; i < row_.size(); ++i) row_[i] = number(columns_.x[i], seen_[i]);
    const std::string_view label = fields_[columns_.y];
    if (n_rows_ == 0) are_words_ = are_classes_ && !label.empty() && !parse_float(label);
    if (are_words_ && is_number_somewhere(label) && n_numbers_++ == 0) number_ = in_quotes(label);
    const float target =
        are_words_ ? words_.number(label, [&] { return place(columns_.y); }) : number(columns_.y, seen_y_);
    if (are_classes_ && !are_words_) {
      const auto number = parse_integer(label);
      are_classes_ = number && *number >= 0 && *number <= largest_class;
      if (!are_classes_) no_class_ = fmt::format("line {} has {}", lines_.number(), in_quotes(label));
    }
    for (std::size_t i = 0; i < row_.size(); ++i) seen_[i].is_y = seen_[i].is_y && !are_words_ && row_[i] == target;
    x.append(std::as_bytes(std::span{row_}));
    y.append(std::as_bytes(std::span{&target, 1}));
    ++n_rows_;
  }

  float number(std::size_t column, ColumnFacts& seen) const {
    if (const auto value = parse_float(fields_[column])) {
      seen.add(fields_[column], *value, n_rows_, lines_.number());
      return *value;
    }
    fail(fmt::format("{} is not a number", in_quotes(fields_[column])), place(column), "a number that float32 can hold",
         n_rows_ == 0 && !options_.has_header ? "leave out --no-header if these are names"
         : fields_[column].empty() && column + 1 == n_columns_ && (names_.empty() || names_[column].empty())
             ? "remove the separator at the end of lines, or choose another --y-column"
         : fields_[column].find(',') != std::string_view::npos
             ? "write numbers with a decimal point and nothing else, 1.5 for 1,5 and 1000 for 1,000"
         : column == columns_.y && options_.no_classes
             ? "leave out --no-classes, as words are classes; or choose another --y-column"
             : "correct it, leave the line out, or choose other columns (\"nan\" is accepted, but a network that meets "
               "it learns nothing)");
  }

  /// With a decimal comma, too.
  static bool is_number_somewhere(std::string_view label) {
    std::string text{label};
    std::ranges::replace(text, ',', '.');
    return parse_float(text).has_value();
  }

  [[nodiscard]] std::string place(std::size_t column) const {
    return fmt::format("{}, {}", lines_.place(), shown(column));
  }

  [[nodiscard]] std::string shown(std::size_t column) const {
    return fmt::format("column {}{}", column, name_of(column));
  }

  [[nodiscard]] std::string name_of(std::size_t column) const {
    if (names_.empty()) return "";
    return fmt::format(" ({})", names_[column].empty() ? "no name" : core::printable(names_[column]));
  }

  /// Whether the column numbers the rows by its name as by its values. pandas numbers from 0 on, R from 1 on; where
  /// pandas gives a name, it does so to the first column.
  [[nodiscard]] bool is_index(std::size_t column, const ColumnFacts& seen) const {
    if (has_index_name(column)) return column == 0 && seen.first == 0;
    return is_nameless(column) && (seen.first == 0 || seen.first == 1);
  }

  [[nodiscard]] bool is_nameless(std::size_t column) const { return !names_.empty() && has_no_name(names_[column]); }
  [[nodiscard]] bool has_index_name(std::size_t column) const {
    return !names_.empty() && is_index_name(names_[column]);
  }

  // Nobody wants to predict the place in the file; but what was asked for is done.
  void doubt_y_that_numbers_rows(std::vector<Remark>& remarks) const {
    if (n_rows_ < 2 || !(seen_y_.first == 0 || seen_y_.first == 1)) return;
    const bool is_named_so = is_nameless(columns_.y) || has_index_name(columns_.y);
    if (is_named_so && options_.y_column.empty())
      fail(fmt::format("{}, the last, is an index, not y: it numbers the {} rows from {:.0f} on", shown(columns_.y),
                       n_rows_, *seen_y_.first),
           path_, "a column with labels or targets, the last or that of --y-column",
           fmt::format("name the column of y: --y-column NAME; --y-column '{}' takes it anyway", numbered(columns_.y)));
    if (is_named_so || (n_rows_ >= enough_rows && !are_classes_))  // of classes, that each sample has one is told
      remarks.push_back(warning(fmt::format("y, {}, numbers the rows from {:.0f} on: see that it is no index",
                                            shown(columns_.y), *seen_y_.first)));
  }

  // Leaves out index columns. A column that only may be one stays, with a warning.
  Spool leave_out_row_numbers(Spool x, std::vector<Remark>& remarks) {
    if (!options_.x_columns.empty()) return x;
    std::vector<std::size_t> kept;
    for (std::size_t i = 0; i < seen_.size(); ++i) {
      const std::size_t column = columns_.x[i];
      if (is_index(column, seen_[i])) {
        remarks.push_back(
            left_out(fmt::format("{}: it numbers the {} row{} from {:.0f} on; --x-columns '{}' keeps it", shown(column),
                                 n_rows_, n_rows_ == 1 ? "" : "s", *seen_[i].first, all_of_x())));
        continue;
      }
      kept.push_back(i);
      if (is_nameless(column))
        remarks.push_back(
            warning(fmt::format("{} is taken as a feature, though it has no name: if it is an index, "
                                "leave it out by --x-columns",
                                shown(column))));
      else if (seen_[i].first && n_rows_ >= (has_index_name(column) ? 2 : enough_rows))
        remarks.push_back(warning(
            fmt::format("{} numbers the rows from {:.0f} on: if it is not a feature, leave it out by --x-columns",
                        shown(column), *seen_[i].first)));
    }
    if (kept.empty())
      fail("the only column of x numbers the rows", path_, "a column with a feature",
           fmt::format("--x-columns '{}' takes it anyway", numbered(columns_.x.front())));
    return kept.size() == seen_.size() ? std::move(x) : only(kept, x);
  }

  /// "#0-#3": what --x-columns would say.
  [[nodiscard]] std::string all_of_x() const {
    std::string text;
    for (std::size_t i = 0, end = 0; i < columns_.x.size(); i = end) {
      for (end = i + 1; end < columns_.x.size() && columns_.x[end] == columns_.x[end - 1] + 1;) ++end;
      text += (text.empty() ? "" : ",") + numbered(columns_.x[i]);
      if (end > i + 1) text += "-" + numbered(columns_.x[end - 1]);
    }
    return text;
  }

  /// These of the columns of `x`, numbered within it.
  Spool only(const std::vector<std::size_t>& kept, const Spool& x) {
    SpoolWriter narrow;
    std::vector<float> piece, narrow_piece;
    for (std::uint64_t first = 0; first < n_rows_; first += piece_rows) {
      piece.resize(std::min(n_rows_ - first, piece_rows) * row_.size());
      x.read_at(first * row_.size() * sizeof(float), std::as_writable_bytes(std::span{piece}));
      narrow_piece.clear();
      for (std::size_t row = 0; row < piece.size(); row += row_.size())
        for (const std::size_t i : kept) narrow_piece.push_back(piece[row + i]);
      narrow.append(std::as_bytes(std::span{narrow_piece}));
    }
    std::vector<ColumnFacts> seen;
    for (const std::size_t i : kept) seen.push_back(std::move(seen_[i]));
    seen_ = std::move(seen);
    return std::move(narrow).finish();
  }

  /// The sizes of the spools tell how many rows and columns there are, and whether labels are classes.
  std::unique_ptr<Source> make_source(std::vector<Spool> spools) {
    Spool x = std::move(spools[0]), y = std::move(spools[1]);
    spools.erase(spools.begin(), spools.begin() + 2);
    const std::vector<std::string> facts = lines_of(spools[1]);
    for (std::size_t i = 1; i < facts.size(); ++i) remarks_.push_back(parse_remark(facts[i]));
    const std::uint64_t n_x = std::stoull(facts.front());
    const std::uint64_t n_rows = x.size() / (n_x * sizeof(float));
    const auto y_dtype = y.size() == n_rows * sizeof(std::uint16_t) ? core::DType::uint16 : core::DType::float32;
    std::vector<ArrayPair> pairs(1);
    pairs[0].split = "train";
    pairs[0].x = std::make_unique<InputArray>(Input{path_ + ", columns of x", std::move(x)}, 0, core::DType::float32,
                                              std::vector<std::uint64_t>{n_rows, n_x});
    pairs[0].y = std::make_unique<InputArray>(Input{path_ + ", column of y", std::move(y)}, 0, y_dtype,
                                              std::vector<std::uint64_t>{n_rows});
    std::vector<std::string> words = lines_of(spools[0]);
    return make_array_source(std::move(pairs), {.no_classes = y_dtype == core::DType::float32,
                                                .words = std::move(words),
                                                .remarks = std::move(remarks_),
                                                .kept = std::move(spools)});
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
  std::string_view separator_{};
  std::string first_{};  ///< the line that says how many columns there are
  std::size_t n_columns_ = 0;
  std::vector<std::string> names_{};
  std::vector<Remark> remarks_{};
  CsvColumns columns_{};
  Fields fields_{};
  std::vector<float> row_{};
  std::vector<ColumnFacts> seen_{};  ///< of each column of x
  ColumnFacts seen_y_{};
  std::uint64_t n_rows_ = 0;
  bool are_classes_;
  bool are_words_ = false;
  WordList words_{};
  std::string no_class_{};
  std::uint64_t n_numbers_ = 0;  ///< among words
  std::string number_{};         ///< the first of them
};

}  // namespace

std::unique_ptr<Source> open_csv(const std::string& path, const ImportOptions& options) {
  return CsvParser{path, options}.parse();
}

}  // namespace lockstep::data
