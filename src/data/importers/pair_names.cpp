#include "data/importers/pair_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/error.hpp"
#include "core/suggest.hpp"

namespace lockstep::data {
namespace {

/// "kmnist-test-labels" for "kmnist-test-imgs"; nothing if it is not named after images.
std::optional<std::string> labels_beside(const std::string& images) {
  for (const std::string_view word : {"images", "imgs"}) {
    const std::size_t at = images.find(word);
    if (at != std::string::npos) return std::string{images}.replace(at, word.size(), "labels");
  }
  return std::nullopt;
}

std::string split_named_in(std::string_view name) {
  const auto has = [&](std::string_view word) { return name.find(word) != std::string_view::npos; };
  return has("train") ? "train" : has("val") ? "val" : has("test") || has("t10k") ? "test" : "train";
}

class Finder {
 public:
  Finder(const std::vector<std::string>& names, const std::function<bool(const std::string&)>& has,
         const std::string& where)
      : names_{names}, has_{has}, where_{where} {}

  [[nodiscard]] std::optional<PairNames> find(const std::string& split, const std::string& x,
                                              const std::string& y) const {
    if (!has_(x)) return std::nullopt;
    if (!has_(y)) fail(fmt::format("array '{}' has no '{}' beside it", x, y));
    return PairNames{split, x, y};
  }

  /// Pairs named after images and labels.
  [[nodiscard]] std::vector<PairNames> find_labelled() const {
    std::vector<PairNames> pairs;
    for (const char* split : {"train", "val", "test"}) {
      for (const std::string& x : names_) {
        const auto y = labels_beside(x);
        if (!y || split_named_in(x) != split || !has_(*y)) continue;
        if (!pairs.empty() && pairs.back().split == split)
          fail(fmt::format("'{}' and '{}' may both be the inputs of {}", pairs.back().x, x, split));
        pairs.push_back({split, x, *y});
      }
    }
    if (!pairs.empty() && pairs.back().split == "test" && (pairs.size() < 2 || pairs[pairs.size() - 2].split != "val"))
      pairs.back().split = "val";
    return pairs;
  }

  [[noreturn]] void fail(const std::string& what) const {
    core::fail_usage(
        {.what = what,
         .where = where_,
         .expected = fmt::format("x and y among the arrays there: {}", names_.empty() ? "none" : core::join(names_)),
         .fix = "name them by --x-name and --y-name"});
  }

 private:
  const std::vector<std::string>& names_;
  const std::function<bool(const std::string&)>& has_;
  const std::string& where_;
};

}  // namespace

std::vector<PairNames> find_pairs(const std::vector<std::string>& names, const std::string& x_name,
                                  const std::string& y_name, const std::string& where) {
  return find_pairs(
      names, [&](const std::string& name) { return std::find(names.begin(), names.end(), name) != names.end(); },
      x_name, y_name, where);
}

std::vector<PairNames> find_pairs(const std::vector<std::string>& names,
                                  const std::function<bool(const std::string& name)>& has, const std::string& x_name,
                                  const std::string& y_name, const std::string& where) {
  const Finder finder{names, has, where};
  std::vector<PairNames> pairs;
  const auto found = [&](const std::string& split, const std::string& x, const std::string& y) {
    const auto pair = finder.find(split, x, y);
    if (pair) pairs.push_back(*pair);
    return pair.has_value();
  };
  const auto found_split = [&](const std::string& split) {
    return found(split, split + "/" + x_name, split + "/" + y_name) ||
           found(split, x_name + "_" + split, y_name + "_" + split);
  };
  if (!found("train", x_name, y_name)) found_split("train");
  const bool has_val = found_split("val");
  if (found_split("test") && !has_val) pairs.back().split = "val";
  if (pairs.empty() && x_name == "x" && y_name == "y") pairs = finder.find_labelled();
  if (pairs.empty()) finder.fail(fmt::format("no array '{}'", x_name));
  return pairs;
}

std::vector<Remark> remarks_on_names(const std::vector<std::string>& names, const std::vector<PairNames>& pairs) {
  constexpr std::size_t most_shown = 5;
  std::vector<Remark> remarks;
  std::vector<std::string> unused;
  for (const std::string& name : names) {
    const auto is_used = [&](const PairNames& pair) { return name == pair.x || name == pair.y; };
    const bool is_matlabs = name.starts_with('#');  // where it keeps what cells refer to
    if (!is_matlabs && std::none_of(pairs.begin(), pairs.end(), is_used)) unused.push_back(name);
  }
  const auto is_listed = [&](const std::string& name) { return std::ranges::find(names, name) != names.end(); };
  const bool are_links =
      !std::ranges::all_of(pairs, [&](const PairNames& pair) { return is_listed(pair.x) && is_listed(pair.y); });
  if (!unused.empty() && !are_links) {  // those in use may go by another name
    const std::size_t n = unused.size();
    unused.resize(std::min(n, most_shown));
    remarks.push_back(left_out(fmt::format("{} other array{}: {}{}", n, n == 1 ? "" : "s", core::join(unused),
                                           n > most_shown ? ", ..." : "")));
  }
  for (const PairNames& pair : pairs)
    if (pair.split == "val" && split_named_in(pair.x) == "test")
      remarks.push_back(assumed(fmt::format("there is no val: {} is the split val", pair.x)));
  return remarks;
}

}  // namespace lockstep::data
