#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "core/error.hpp"
#include "core/suggest.hpp"
#include "data/augment/augment.hpp"

namespace lockstep::data {
namespace {

using Kind = AugmentStep::Kind;

constexpr std::uint64_t largest_size = 65535;

/// One step and its words, for messages.
struct Words {
  std::string_view step;
  std::string_view flag;
  std::vector<std::string_view> parts{};  ///< name and arguments

  [[noreturn]] void fail(std::string what, std::string expected, std::string fix = {}) const {
    core::fail_usage({.what = fmt::format("{} in step '{}'", what, step),
                      .where = std::string{flag},
                      .expected = std::move(expected),
                      .fix = std::move(fix)});
  }
};

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

template <class T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::uint64_t pixels(const Words& words, std::string_view text, std::uint64_t least) {
  const auto value = number<std::uint64_t>(text);
  if (!value || *value < least || *value > largest_size)
    words.fail(fmt::format("'{}'", text), fmt::format("pixels from {} to {}", least, largest_size));
  return *value;
}

/// "N" or "HEIGHTxWIDTH"; for a resize, "N" leaves the width at 0.
void take_size(const Words& words, AugmentStep& step) {
  const auto sides = split(words.parts[1], 'x');
  if (sides.size() > 2) words.fail(fmt::format("'{}'", words.parts[1]), "SIZE or HEIGHTxWIDTH");
  step.height = pixels(words, sides.front(), 1);
  if (sides.size() == 2)
    step.width = pixels(words, sides.back(), 1);
  else
    step.width = step.kind == Kind::resize ? 0 : step.height;
}

std::vector<double> per_channel(const Words& words, std::string_view text) {
  std::vector<double> values;
  for (const std::string_view part : split(text, '/')) {
    const auto value = number<double>(part);
    if (!value || !(std::abs(*value) <= 1e6))
      words.fail(fmt::format("'{}'", part), "a number, or one per channel separated by '/', as in 0.1/0.2/0.3");
    values.push_back(*value);
  }
  return values;
}

void take_crop(const Words& words, AugmentStep& step) {
  take_size(words, step);
  if (words.parts.size() > 2) step.padding = pixels(words, words.parts[2], 0);
}

void take_flip(const Words& words, AugmentStep& step) {
  if (words.parts.size() < 2) return;
  const auto probability = number<double>(words.parts[1]);
  if (!probability || !(*probability >= 0 && *probability <= 1))
    words.fail(fmt::format("'{}'", words.parts[1]), "a probability from 0 to 1");
  step.probability = *probability;
}

void take_normalize(const Words& words, AugmentStep& step) {
  step.mean = per_channel(words, words.parts[1]);
  step.stddev = per_channel(words, words.parts[2]);
  if (step.mean.size() != step.stddev.size() && step.mean.size() != 1 && step.stddev.size() != 1)
    words.fail(fmt::format("{} means and {} standard deviations", step.mean.size(), step.stddev.size()),
               "as many of both, or one");
  if (std::any_of(step.stddev.begin(), step.stddev.end(), [](double value) { return !(value > 0); }))
    words.fail(fmt::format("'{}'", words.parts[2]), "standard deviations above 0");
}

struct Grammar {
  std::string_view name;
  Kind kind;
  std::string_view form;
  std::size_t n_least;  ///< arguments
  std::size_t n_most;
  void (*take)(const Words&, AugmentStep&);
};

constexpr std::array<Grammar, 6> grammars{{
    {"crop", Kind::random_crop, "crop:SIZE[:PADDING]", 1, 2, take_crop},
    {"flip", Kind::horizontal_flip, "flip[:PROBABILITY]", 0, 1, take_flip},
    {"rrcrop", Kind::random_resized_crop, "rrcrop:SIZE", 1, 1, take_size},
    {"resize", Kind::resize, "resize:SIZE", 1, 1, take_size},
    {"centercrop", Kind::center_crop, "centercrop:SIZE", 1, 1, take_size},
    {"normalize", Kind::normalize, "normalize:MEAN:STD, of several channels as in 0.1/0.2/0.3", 2, 2, take_normalize},
}};

[[noreturn]] void fail_unknown(const Words& words) {
  std::vector<std::string> names, forms;
  for (const Grammar& grammar : grammars) {
    names.emplace_back(grammar.name);
    forms.emplace_back(grammar.form);
  }
  const auto meant = core::near_miss(words.parts.front(), names);
  words.fail(fmt::format("unknown '{}'", words.parts.front()), core::join(forms),
             meant ? fmt::format("did you mean '{}'?", *meant) : "");
}

AugmentStep parse_step(std::string_view text, std::string_view flag) {
  const Words words{text, flag, split(text, ':')};
  const auto grammar = std::find_if(grammars.begin(), grammars.end(),
                                    [&](const Grammar& candidate) { return candidate.name == words.parts.front(); });
  if (grammar == grammars.end()) fail_unknown(words);
  const std::size_t n_arguments = words.parts.size() - 1;
  if (n_arguments < grammar->n_least || n_arguments > grammar->n_most)
    words.fail(fmt::format("{} argument{}", n_arguments, n_arguments == 1 ? "" : "s"), std::string{grammar->form});
  AugmentStep step;
  step.kind = grammar->kind;
  grammar->take(words, step);
  return step;
}

}  // namespace

std::vector<AugmentStep> parse_augment(std::string_view text, std::string_view flag) {
  std::vector<AugmentStep> steps;
  if (text.empty()) return steps;
  for (const std::string_view step : split(text, ',')) steps.push_back(parse_step(step, flag));
  return steps;
}

}  // namespace lockstep::data
