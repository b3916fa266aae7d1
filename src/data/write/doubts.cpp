#include "data/write/doubts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/printable.hpp"
#include "core/suggest.hpp"
#include "data/format/names.hpp"
#include "io/digest.hpp"

namespace lockstep::data {
namespace {

constexpr std::uint64_t most_compared = std::uint64_t{1} << 21;

std::string of_all(std::uint64_t n, std::uint64_t all, std::string_view what) {
  return fmt::format("{} of {} {}{}", n, all, what, all == 1 ? "" : "s");
}

// "3 of 40 values of x are"
std::string values_are(const ValueFacts& facts, std::uint64_t n, std::string_view name) {
  return fmt::format("{} of {} {}", of_all(n, facts.n_values, "value"), name, n == 1 ? "is" : "are");
}

void doubt_numbers(const SplitFacts& split, const ArraySpec& array, std::string_view name, const ValueFacts& facts,
                   std::vector<Remark>& remarks) {
  const auto warn = [&](std::string text) { remarks.push_back(warning(fmt::format("{}: {}", split.name, text))); };
  if (facts.n_not_finite > 0) warn(values_are(facts, facts.n_not_finite, name) + " NaN or infinite");
  if (facts.beyond.n > 0)
    warn(fmt::format("{} beyond float32, in which training computes, such as {}",
                     values_are(facts, facts.beyond.n, name), describe_loss(array.dtype, facts.beyond)));
  if (facts.marks.n > 0)
    warn(fmt::format("{} {} or such, which often mark what is missing", values_are(facts, facts.marks.n, name),
                     describe_value(array.dtype, facts.marks)));
  if (facts.rounded.n > 0)
    warn(fmt::format("{} rounded in training, as float32 does not hold {}, such as {}{}",
                     values_are(facts, facts.rounded.n, name),
                     facts.rounded.n == 1 ? "this whole number" : "these whole numbers",
                     describe_loss(array.dtype, facts.rounded), core::is_floating(array.dtype) ? "" : "; ids are not"));
}

// What is loaded of uint8 is value / 255, and of anything else the value itself.
void doubt_scale(const SetFacts& facts, std::vector<Remark>& remarks) {
  const ArraySpec& x = facts.spec.x;
  constexpr double dark = 31, bright = 16;  // normalized values hardly go so far
  double highest = -std::numeric_limits<double>::infinity();
  for (const SplitFacts& split : facts.splits) highest = std::max(highest, split.x.highest);
  if (x.shape.size() < 2 || facts.spec.is_encoded() || !std::isfinite(highest)) return;
  if (x.dtype == core::DType::uint8 && highest <= dark)
    remarks.push_back(
        warning(fmt::format("x, uint8, has no value above {:.0f}, and training divides by 255: levels that are not out "
                            "of 255 are better stored as floats",
                            highest)));
  if (core::is_floating(x.dtype) && highest > bright)
    remarks.push_back(assumed(fmt::format(
        "x, {}, has values up to {:.6g} and is taken as numbers: training divides levels of uint8 alone by 255",
        core::name(x.dtype), highest)));
}

template <class F>
void for_groups(std::span<const SampleDigest> sorted, F&& f) {
  for (std::size_t begin = 0, end = 0; begin < sorted.size(); begin = end) {
    while (end < sorted.size() && sorted[end].x == sorted[begin].x) ++end;
    if (end - begin > 1) f(sorted.subspan(begin, end - begin));
  }
}

using Pair = std::pair<const SampleDigest*, const SampleDigest*>;

bool is_earlier(const Pair& a, const Pair& b) {
  return std::tie(a.first->split, a.first->index, a.second->index) <
         std::tie(b.first->split, b.first->index, b.second->index);
}

/// Pairs of samples with one x: how many there are, and the earliest.
struct Twins {
  std::uint64_t n = 0;
  std::optional<Pair> first{};

  void add(const SampleDigest& sample, const SampleDigest& other) {
    ++n;
    const Pair pair{&sample, &other};
    if (!first || is_earlier(pair, *first)) first = pair;
  }
};

/// The samples of a group that are in a split, in the order of the source.
std::span<const SampleDigest> of_split(std::span<const SampleDigest> group, std::size_t split) {
  const auto range = std::ranges::equal_range(group, split, {}, &SampleDigest::split);
  return {range.begin(), range.end()};
}

class SampleDoubts {
 public:
  explicit SampleDoubts(const SetFacts& facts) : facts_{facts}, n_(facts.splits.size()) {
    for (const SampleDigest& sample : facts.digests) ++n_[sample.split];
  }

  std::vector<Remark> all() {
    doubt_sizes();
    doubt_blanks();
    for (std::size_t split = 0; split < n_.size(); ++split) {
      for (std::size_t earlier = 0; earlier < split; ++earlier) doubt_leak(earlier, split);
      doubt_repeats(split);
    }
    doubt_classes();
    return std::move(remarks_);
  }

 private:
  [[nodiscard]] const std::string& name(std::size_t split) const { return facts_.splits[split].name; }
  [[nodiscard]] std::string name_of(const SampleDigest& sample) const {
    return facts_.name_of(sample.split, sample.index);
  }
  [[nodiscard]] std::string such_as(const Pair& pair) const {
    return fmt::format("such as {} and {}", name_of(*pair.first), name_of(*pair.second));
  }
  /// "12 of 400 samples", or of those that were compared.
  [[nodiscard]] std::string samples(std::uint64_t n, std::size_t split) const {
    return of_all(n, n_[split], facts_.one_in == 1 ? "sample" : "compared sample");
  }
  /// How many were compared, where it is not all.
  [[nodiscard]] std::string compared() const {
    return facts_.one_in == 1 ? "" : fmt::format(" (one in {} is compared)", facts_.one_in);
  }

  void doubt_sizes() {
    for (const SplitFacts& split : facts_.splits)
      if (split.name == "val" && split.n_samples > facts_.splits.front().n_samples)
        remarks_.push_back(warning(fmt::format("val has {} samples and {} {}: see that they are not swapped",
                                               split.n_samples, name(0), facts_.splits.front().n_samples)));
  }

  void doubt_blanks() {
    for (std::size_t split = 0; split < n_.size(); ++split) {
      const auto& [n, first] = facts_.splits[split].blank;
      if (n > 0)
        remarks_.push_back(warning(fmt::format(
            "{}: the x of {} {} zeros alone, the first is {}: see that it was written", name(split),
            of_all(n, facts_.splits[split].n_samples, "sample"), n == 1 ? "is" : "are", facts_.name_of(split, first))));
    }
  }

  // What a model has learned is no test of it.
  void doubt_leak(std::size_t earlier, std::size_t later) {
    Twins twins;
    for_groups(facts_.digests, [&](std::span<const SampleDigest> group) {
      const auto known = of_split(group, earlier);
      if (known.empty()) return;
      for (const SampleDigest& sample : of_split(group, later)) twins.add(sample, known.front());
    });
    if (twins.n > 0)
      remarks_.push_back(
          warning(fmt::format("{}: {} {} an x that {} has as well, {}{}", name(later), samples(twins.n, later),
                              twins.n == 1 ? "has" : "have", name(earlier), such_as(*twins.first), compared())));
  }

  void doubt_repeats(std::size_t split) {
    Twins twins, of_other_y;
    for_groups(facts_.digests, [&](std::span<const SampleDigest> group) {
      const auto here = of_split(group, split);
      for (std::size_t i = 1; i < here.size(); ++i) {
        twins.add(here[i], here[0]);
        if (here[i].y != here[0].y) of_other_y.add(here[i], here[0]);
      }
    });
    if (twins.n == 0) return;
    const bool has_classes = !facts_.spec.classes.empty();
    const std::string others =
        of_other_y.n == 0 ? "" : fmt::format(", {} of them with another {}", of_other_y.n, has_classes ? "class" : "y");
    const std::string text = fmt::format("{}: {} {} the x of an earlier one{}, {}{}", name(split),
                                         samples(twins.n, split), twins.n == 1 ? "repeats" : "repeat", others,
                                         such_as(of_other_y.first ? *of_other_y.first : *twins.first), compared());
    remarks_.push_back(has_classes && of_other_y.n > 0 ? warning(text) : note(text));
  }

  // Only if all samples are compared.
  void doubt_classes() {
    if (facts_.spec.classes.empty() || facts_.spec.y.n_elements() != 1 || facts_.one_in > 1) return;
    std::vector<std::vector<bool>> has(n_.size(), std::vector<bool>(facts_.spec.classes.size()));
    for (const SampleDigest& sample : facts_.digests) has[sample.split].at(sample.y) = true;
    for (std::size_t split = 1; split < n_.size(); ++split) {
      std::vector<std::string> unknown;
      for (std::size_t i = 0; i < facts_.spec.classes.size(); ++i)
        if (has[split][i] && !has[0][i]) unknown.push_back(facts_.spec.classes[i]);
      if (unknown.empty()) continue;
      constexpr std::size_t most_shown = 5;
      const auto shown = std::span{std::as_const(unknown)}.first(std::min(most_shown, unknown.size()));
      remarks_.push_back(
          warning(fmt::format("{}: {} class{} of it {} no sample in {}: {}{}", name(split), unknown.size(),
                              unknown.size() == 1 ? "" : "es", unknown.size() == 1 ? "has" : "have", name(0),
                              core::printable(core::join(shown)), shown.size() < unknown.size() ? ", ..." : "")));
    }
  }

  const SetFacts& facts_;
  std::vector<std::uint64_t> n_;  ///< compared samples of each split
  std::vector<Remark> remarks_{};
};

}  // namespace

std::uint64_t compared_one_in(std::uint64_t n_samples) noexcept {
  std::uint64_t one_in = 1;
  while (n_samples / one_in > most_compared) one_in *= 2;
  return one_in;
}

SampleDigest digest_sample(std::span<const std::byte> x, std::span<const std::byte> y) noexcept {
  SampleDigest sample{.x = io::short_digest_of(x)};
  if (y.size() <= sizeof sample.y)
    std::memcpy(&sample.y, y.data(), y.size());
  else
    sample.y = io::short_digest_of(y);
  return sample;
}

void add(CountedSamples& sum, const CountedSamples& more) noexcept {
  sum.n += more.n;
  sum.first = std::min(sum.first, more.first);
}

std::vector<Remark> remarks_on_classes(const std::vector<std::string>& classes) {
  std::map<std::string, std::string> seen;
  std::vector<Remark> remarks;
  for (const std::string& name : classes) {
    const auto [twin, is_new] = seen.emplace(without_slips(name), name);
    if (!is_new)
      remarks.push_back(warning(fmt::format(
          "the classes '{}' and '{}' differ only by case, blanks or invisible characters", twin->second, name)));
  }
  const auto is_number = [](const std::string& name) {
    return name.find_first_not_of("0123456789") == std::string::npos;
  };
  const auto is_shorter = [](const std::string& a, const std::string& b) { return a.size() < b.size(); };
  const auto unsorted = std::ranges::is_sorted_until(classes, is_shorter);
  if (unsorted != classes.end() && std::ranges::all_of(classes, is_number))
    remarks.push_back(
        warning(fmt::format("classes are whole numbers and sorted as texts: the label of class '{}' is {}",
                            *std::prev(unsorted), unsorted - classes.begin() - 1)));
  return remarks;
}

std::vector<Remark> remarks_on_values(const SetFacts& facts) {
  std::vector<Remark> remarks;
  for (const SplitFacts& split : facts.splits) {
    doubt_numbers(split, facts.spec.x, "x", split.x, remarks);
    doubt_numbers(split, facts.spec.y, "y", split.y, remarks);
  }
  doubt_scale(facts, remarks);
  return remarks;
}

std::vector<Remark> remarks_on_samples(SetFacts& facts) {
  std::ranges::sort(facts.digests, [](const SampleDigest& a, const SampleDigest& b) {
    return std::tie(a.x, a.split, a.index) < std::tie(b.x, b.split, b.index);
  });
  return SampleDoubts{facts}.all();
}

}  // namespace lockstep::data
