// MovieLens ratings: ratings.csv (userId,movieId,rating,timestamp), or the same without a header: ratings.dat, between
// "::", and u.data, between tabs.
// Users and items are numbered from 0 on in the order of their original ids; ids.h5 keeps those, by number.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <unordered_set>

#include "core/error.hpp"
#include "data/importers/importers.hpp"
#include "data/importers/text.hpp"
#include "data/write/spool.hpp"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

struct Rating {
  std::int64_t user;
  std::int64_t item;
  float value;
};

constexpr std::uint64_t ratings_together = 4096;
constexpr std::array<std::string_view, 4> csv_header{"userId", "movieId", "rating", "timestamp"};  // the last may lack
constexpr const char* give_as_unpacked =
    "give ratings.csv of ml-latest, ratings.dat of ml-1m or u.data of ml-100k as it was unpacked";

/// Original ids, ascending; the number of an id is its place.
class Ids {
 public:
  void add(std::int64_t id) { seen_.insert(id); }
  /// All of them, ascending.
  [[nodiscard]] Spool sort() {
    std::vector<std::int64_t> ids{seen_.begin(), seen_.end()};
    std::sort(ids.begin(), ids.end());
    seen_ = {};
    SpoolWriter spool;
    spool.append(std::as_bytes(std::span{ids}));
    return std::move(spool).finish();
  }
  void load(const Spool& sorted) {
    ids_.resize(sorted.size() / sizeof(ids_[0]));
    sorted.read_at(0, std::as_writable_bytes(std::span{ids_}));
  }
  [[nodiscard]] const std::vector<std::int64_t>& by_number() const noexcept { return ids_; }
  [[nodiscard]] std::int32_t number_of(std::int64_t id) const {
    return static_cast<std::int32_t>(std::lower_bound(ids_.begin(), ids_.end(), id) - ids_.begin());
  }

 private:
  std::unordered_set<std::int64_t> seen_{};
  std::vector<std::int64_t> ids_{};
};

class RatingParser {
 public:
  explicit RatingParser(const std::string& path) : lines_{path} {}

  /// The next rating; false at the end of the file.
  bool next(Rating& rating) {
    auto line = lines_.next();
    if (line && is_first_line_) {
      is_first_line_ = false;
      const auto has = [&](std::string_view text) { return line->find(text) != std::string_view::npos; };
      separator_ = has("::") ? "::" : has("\t") ? "\t" : ",";
      if (separator_ == ",") {
        check_header(*line);
        line = lines_.next();
      }
    }
    if (!line) return false;
    if (!split_fields(*line, separator_, fields_) || fields_.size() < 3 || fields_.size() > 4)
      fail(fmt::format("{} fields", fields_.size()),
           fmt::format("user{0}item{0}rating{0}timestamp", separator_ == "\t" ? " (tab) " : separator_));
    rating = {id(0, "user"), id(1, "item"), value()};
    return true;
  }
  /// Whether the rating last given has a timestamp.
  [[nodiscard]] bool is_timed() const noexcept { return fields_.size() == 4; }

 private:
  void check_header(std::string_view line) {
    const bool is_split = split_fields(line, ",", fields_);
    const std::vector<std::string_view>& names = fields_.all;
    const auto fits = std::min(names.size(), csv_header.size());
    if (is_split && fits >= 3 && std::equal(names.begin(), names.end(), csv_header.begin(), csv_header.begin() + fits))
      return;
    fail(fmt::format("first line {}", in_quotes(line)),
         fmt::format("{}, or lines such as 1::1193::5::978300760", fmt::join(csv_header, ",")));
  }

  [[nodiscard]] std::int64_t id(std::size_t field, const char* what) const {
    const auto id = parse_integer(fields_[field]);
    if (!id || *id < 0) fail(fmt::format("{} {}", what, in_quotes(fields_[field])), "an integer, 0 or more");
    return *id;
  }

  [[nodiscard]] float value() const {
    const auto value = parse_float(fields_[2]);
    if (!value || !std::isfinite(*value)) fail(fmt::format("rating {}", in_quotes(fields_[2])), "a number such as 3.5");
    return *value;
  }

  [[noreturn]] void fail(const std::string& what, const std::string& expected) const {
    core::fail_usage({.what = what, .where = lines_.place(), .expected = expected, .fix = give_as_unpacked});
  }

  LineReader lines_;
  bool is_first_line_ = true;
  std::string_view separator_{};
  Fields fields_{};
};

class MovieLensSource final : public Source {
 public:
  MovieLensSource(const std::string& path, SharedSpools* spools, std::vector<Remark> remarks)
      : spools_{take_spools(spools, 4, [&] { return collect(path); })},
        ratings_{spools_[0]},
        remarks_{std::move(remarks)} {
    spec_.x = {core::DType::int32, {2}};
    spec_.y = {core::DType::float32, {}};
    users_.load(spools_[1]);
    items_.load(spools_[2]);
    spools_[3].read_at(0, std::as_writable_bytes(std::span{&facts_, 1}));
    const std::size_t most = std::max(users_.by_number().size(), items_.by_number().size());
    if (n_ratings() == 0 || most > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
      core::fail_usage({.what = fmt::format("{} ratings, {} different ids", n_ratings(), most),
                        .where = path,
                        .expected = "at least one rating, and fewer than 2^31 users and items",
                        .fix = give_as_unpacked});
    }
  }

  [[nodiscard]] const SetSpec& spec() const override { return spec_; }
  [[nodiscard]] std::vector<SourceSplit> splits() const override { return {{"train", n_ratings()}}; }

  void read(std::size_t /*split*/, std::uint64_t first, std::uint64_t n, std::span<std::byte> x,
            std::span<std::byte> y) override {
    std::vector<Rating> ratings(std::min(n, ratings_together));
    for (std::uint64_t done = 0; done < n; done += ratings.size()) {
      ratings.resize(std::min(n - done, ratings_together));
      ratings_.read_at((first + done) * sizeof(Rating), std::as_writable_bytes(std::span{ratings}));
      for (std::size_t i = 0; i < ratings.size(); ++i) {
        const std::int32_t pair[2] = {users_.number_of(ratings[i].user), items_.number_of(ratings[i].item)};
        std::memcpy(&x[(done + i) * sizeof(pair)], pair, sizeof(pair));
        std::memcpy(&y[(done + i) * sizeof(float)], &ratings[i].value, sizeof(float));
      }
    }
  }

  [[nodiscard]] std::string name_of(std::size_t /*split*/, std::uint64_t index) const override {
    Rating rating{};
    ratings_.read_at(index * sizeof rating, std::as_writable_bytes(std::span{&rating, 1}));
    return fmt::format("rating {} (user {}, item {})", index, rating.user, rating.item);
  }

  [[nodiscard]] std::vector<ExtraFile> extra_files() override {
    return {{std::string{ids_file_name}, {{"user", users_.by_number()}, {"item", items_.by_number()}}}};
  }

  [[nodiscard]] std::vector<Remark> remarks() const override {
    std::vector<Remark> remarks = remarks_;
    if (facts_.n_timed > 0)
      remarks.push_back(
          left_out(fmt::format("the timestamps of {} rating{}", facts_.n_timed, facts_.n_timed == 1 ? "" : "s")));
    remarks.push_back(note(fmt::format("{} users and {} items, ratings from {} to {}", users_.by_number().size(),
                                       items_.by_number().size(), facts_.least, facts_.most)));
    return remarks;
  }

 private:
  [[nodiscard]] std::uint64_t n_ratings() const noexcept { return ratings_.size() / sizeof(Rating); }

  struct RatingFacts {
    float least = std::numeric_limits<float>::max();
    float most = std::numeric_limits<float>::lowest();
    std::uint64_t n_timed = 0;  ///< with a timestamp
  };

  /// Ratings, users, items, and facts of all ratings.
  std::vector<Spool> collect(const std::string& path) {
    RatingParser parser{path};
    SpoolWriter spool;
    for (Rating rating{}; parser.next(rating);) {
      users_.add(rating.user);
      items_.add(rating.item);
      facts_ = {std::min(facts_.least, rating.value), std::max(facts_.most, rating.value),
                facts_.n_timed + (parser.is_timed() ? 1 : 0)};
      spool.append(std::as_bytes(std::span{&rating, 1}));
    }
    SpoolWriter range;
    range.append(std::as_bytes(std::span{&facts_, 1}));
    return make_spools(std::move(spool).finish(), users_.sort(), items_.sort(), std::move(range).finish());
  }

  RatingFacts facts_{};
  Ids users_{};
  Ids items_{};
  std::vector<Spool> spools_;
  const Spool& ratings_;
  std::vector<Remark> remarks_;
  SetSpec spec_;
};

/// The file itself, or those in the folder.
std::vector<std::string> find_ratings(const std::string& path) {
  if (is_file(path)) return {path};
  std::vector<std::string> found;
  for (const char* name : {"ratings.csv", "ratings.dat", "u.data"})
    if (is_there(fs::path{path} / name)) found.push_back((fs::path{path} / name).string());
  if (!found.empty()) return found;
  core::fail_usage({.what = is_there(path) ? "no ratings in it" : "no such file or folder",
                    .where = path,
                    .expected = "ratings.csv, ratings.dat or u.data",
                    .fix = "give the file, or the folder of the unpacked archive"});
}

}  // namespace

std::unique_ptr<Source> open_movielens(const std::string& path, const ImportOptions& options) {
  const std::vector<std::string> files = find_ratings(path);
  std::vector<Remark> remarks;
  const auto name_of = [](const std::string& file) { return fs::path{file}.filename().string(); };
  for (std::size_t i = 1; i < files.size(); ++i)
    remarks.push_back(left_out(fmt::format("{}, as {} is read", name_of(files[i]), name_of(files.front()))));
  return std::make_unique<MovieLensSource>(files.front(), options.spools, std::move(remarks));
}

}  // namespace lockstep::data
