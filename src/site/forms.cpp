#include "site/forms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/ascii.hpp"
#include "core/suggest.hpp"
#include "site/options.hpp"
#include "site/text.hpp"

namespace lockstep::site {
namespace {

/// Numbers between colons, at most three; none if one is no number.
std::optional<std::vector<long>> clock_parts(std::string_view text) {
  std::vector<long> numbers;
  for (const std::string_view part : split(text, ':')) {
    const auto number = whole_number(part);
    if (!number || *number < 0 || numbers.size() == 3) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

double minutes_of(const std::vector<long>& hms) {
  return 60.0 * static_cast<double>(hms[0]) + static_cast<double>(hms[1]) + static_cast<double>(hms[2]) / 60;
}

/// A whole number, as neither batch system takes fractions, and a unit; without one 1 is `scale` GB.
std::optional<double> size_in(std::string_view text, double scale, bool has_words) {
  long number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc{} || number < 0) return std::nullopt;
  std::string unit{text.substr(static_cast<std::size_t>(end - text.data()))};
  std::ranges::transform(unit, unit.begin(), core::to_lower);
  if (unit.empty()) return static_cast<double>(number) * scale;
  const double width = has_words && unit.back() == 'w' ? 8 : 1;
  if (unit.back() == 'b' || width > 1) unit.pop_back();
  const std::string_view units = has_words ? "kmgtp" : "kmgt";
  const std::size_t power = unit.empty() ? 0 : units.find(unit) + 1;  // npos + 1 is 0
  if (unit.size() > 1 || (!unit.empty() && power == 0) || (unit.empty() && !has_words)) return std::nullopt;
  return static_cast<double>(number) * width * std::pow(1024.0, static_cast<double>(power) - 3);
}

bool is_count(std::string_view text) { return whole_number(text).value_or(0) > 0; }

/// "2", "2-4", "1k".
bool is_node_count(std::string_view text) {
  const auto is_end = [](std::string_view end) {
    if (end.ends_with('k') || end.ends_with('m')) end.remove_suffix(1);
    return is_count(end);
  };
  const auto ends = split(text, '-');
  return ends.size() <= 2 && std::ranges::all_of(ends, is_end);
}

bool is_gpu_count(std::string_view text) {
  return std::ranges::all_of(split(text, ','), [](std::string_view part) {
    return whole_number(part.substr(part.rfind(':') + 1)).value_or(-1) >= 0;  // npos + 1 is 0
  });
}

bool is_word_of(std::string_view words, std::string_view word) {
  return std::ranges::any_of(split_words(words),
                             [word](std::string_view one) { return core::equal_ignoring_case(one, word); });
}

/// By one letter; none of them is long.
bool is_misspelt(std::string_view words, std::string_view word) {
  const auto is_near = [word](std::string_view one) { return core::edit_distance(one, word) == 1; };
  return word.size() < 32 && !is_word_of(words, word) && std::ranges::any_of(split_words(words), is_near);
}

bool are_gres(std::string_view text) {
  return std::ranges::all_of(read_gres(text), [](const Gres& gres) {
    return !is_misspelt("gpu", gres.name) && (gres.name != "gpu" || gres.count);
  });
}

bool are_words_of(std::string_view words, std::string_view list, char separator) {
  return std::ranges::all_of(split(list, separator), [words](std::string_view word) {
    const std::size_t equals = word.find('=');
    return is_word_of(words, equals == word.npos ? trim(word) : word.substr(0, equals + 1));
  });
}

/// Tells which part of "a:b" first fits no group of its own, as the form pieces has them; empty if all fit.
std::string odd_piece(std::string_view groups, std::string_view value) {
  auto left = split_words(groups);
  for (const std::string_view part : split(value, ':')) {
    const auto fits = [part](std::string_view one) {
      const std::size_t n = one.find('=') + 1;  // npos + 1 is 0
      return n == 0 ? one == part : part.size() > n && part.starts_with(one.substr(0, n));
    };
    const auto found = std::ranges::find_if(left, [&](auto all) { return std::ranges::any_of(split(all, '/'), fits); });
    if (found == left.end()) return part.empty() ? "no empty part: " : fmt::format("not '{}' there: ", part);
    left.erase(found);
  }
  return "";
}

bool has_digit(std::string_view text) { return text.find_first_of("0123456789") != text.npos; }

/// afterok:20:21,afterany:23; singleton; after:20+5.
bool is_dependency(std::string_view text) {
  const char separator = text.find('?') != text.npos ? '?' : ',';
  return std::ranges::all_of(split(text, separator), [](std::string_view part) {
    const std::string_view type = part.substr(0, part.find(':'));
    const bool has_jobs = part.size() > type.size() + 1;
    return core::equal_ignoring_case(part, "singleton") ||
           (has_jobs && is_word_of("after afterany afterburstbuffer aftercorr afternotok afterok expand", type)) ||
           whole_number(part).has_value();
  });
}

/// Whether `words` has each word of "ring,tree", "^LL128", or "allreduce:ring;broadcast:^tree".
bool is_choice(std::string_view words, std::string_view text) {
  return std::ranges::all_of(split(text, ';'), [words](std::string_view part) {
    part = part.substr(part.find(':') + 1);  // npos + 1 is 0
    return are_words_of(words, part.substr(part.starts_with('^') ? 1 : 0), ',');
  });
}

using Text = std::string_view;
struct FormRow {
  std::string_view name;
  bool (*fits)(std::string_view words, std::string_view value);
  std::string_view expected;  ///< words follow where it ends in a blank
};
constexpr FormRow form_rows[]{
    {"text", [](Text, std::string_view) { return true; }, ""},
    {"count", [](Text, Text v) { return is_count(v); }, "a whole number from 1"},
    {"whole", [](Text, Text v) { return whole_number(v).value_or(-1) >= 0; }, "a whole number from 0"},
    {"number", [](Text, Text v) { return whole_number(v).has_value(); }, "a whole number"},
    {"nodes", [](Text, Text v) { return is_node_count(v); }, "a whole number from 1, or a range like 2-4"},
    {"gpus", [](Text, Text v) { return is_gpu_count(v); }, "N or TYPE:N"},
    {"gres", [](Text, Text v) { return are_gres(v); }, "gpu:N or gpu:TYPE:N"},
    {"memory", [](Text, Text v) { return slurm_gb(v).has_value(); },
     "a whole number and K, M, G or T, such as 208G or 512M; 0 for all of the node"},
    {"size", [](Text, Text v) { return pbs_gb(v).has_value(); }, "a whole number and kb, mb, gb or tb, such as 480gb"},
    {"time", [](Text, Text v) { return slurm_minutes(v) || is_word_of("UNLIMITED INFINITE", v); },
     "minutes, HH:MM:SS or D-HH:MM:SS"},
    {"duration", [](Text, Text v) { return pbs_minutes(v).has_value(); }, "HH:MM:SS"},
    {"path", [](Text, Text v) { return !v.starts_with('~'); },
     "the path written out, as no shell reads this line: /home/NAME/..."},
    {"signal", [](Text, Text v) { return read_signal(v).has_value(); },
     "B:USR1@300: a signal, and the seconds before the end"},
    {"array", [](Text, Text v) { return greatest_index(v).has_value(); }, "0-15, 1,3,5 or 0-15%4, at most 4 at a time"},
    {"dependency", [](Text, Text v) { return is_dependency(v); },
     "afterok:JOB, afterany:JOB, afternotok:JOB or singleton, with commas between"},
    {"port", [](Text, Text v) { return whole_number(v).value_or(-1) >= 0 && *whole_number(v) <= 65535; },
     "a port, 0 to 65535"},
    {"counts", [](Text, Text v) { return std::ranges::all_of(split(v, ','), is_count, trim); },
     "a whole number from 1"},
    {"word", [](Text words, Text v) { return is_word_of(words, v); }, "one of "},
    {"exact", [](Text words, Text v) { return is_one_of(v, words); }, "one of "},
    {"list", [](Text words, Text v) { return are_words_of(words, v, ','); }, "a list of "},
    {"choice", [](Text words, Text v) { return is_choice(words, v); }, "a list of "},
    {"parts",
     [](Text words, Text v) {
       return std::ranges::all_of(split(v, ','), [words](Text part) { return are_words_of(words, part, ':'); });
     },
     "with colons between, some of "},
    {"pieces", [](Text groups, Text v) { return odd_piece(groups, v).empty(); },
     "with colons between, at most one each of "},
    {"letters", [](Text words, Text v) { return !v.empty() && v.find_first_not_of(words) == v.npos; }, "letters of "},
    {"moment", [](Text words, Text v) { return has_digit(v) || v.find('-') != v.npos || are_words_of(words, v, ' '); },
     "2026-01-31T12:00, 16:00, now+1hour, or one of "},
    {"near", [](Text words, Text v) { return has_digit(v) || !is_misspelt(words, v); }, "one of "},
};

}  // namespace

bool is_form(std::string_view name) { return find_by(form_rows, name, &FormRow::name) != nullptr; }

std::string expected_of(std::string_view form, std::string_view words, std::string_view value) {
  const FormRow* const row = find_by(form_rows, form, &FormRow::name);
  if (row == nullptr) return fmt::format("a form of the table, not '{}'", form);
  if (row->fits(words, value)) return "";
  return fmt::format("{}{}{}", form == "pieces" ? odd_piece(words, value) : "", row->expected,
                     fmt::join(split_words(row->expected.ends_with(' ') ? words : ""), ", "));
}

std::optional<double> slurm_minutes(std::string_view text) {
  const std::size_t dash = text.find('-');
  auto parts = clock_parts(text.substr(dash + 1));  // npos + 1 is 0
  if (!parts) return std::nullopt;
  if (dash != text.npos) {
    const auto days = whole_number(text.substr(0, dash));
    if (!days || *days < 0) return std::nullopt;
    parts->resize(3);
    return 1440.0 * static_cast<double>(*days) + minutes_of(*parts);
  }
  if (parts->size() < 3) parts->insert(parts->begin(), 0);
  parts->resize(3);
  return minutes_of(*parts);
}

std::optional<double> pbs_minutes(std::string_view text) {
  auto parts = clock_parts(text);
  if (!parts) return std::nullopt;
  while (parts->size() < 3) parts->insert(parts->begin(), 0);
  return minutes_of(*parts);
}

std::optional<double> slurm_gb(std::string_view text) { return size_in(text, 1.0 / 1024, false); }
std::optional<double> pbs_gb(std::string_view text) { return size_in(text, std::pow(1024.0, -3), true); }

std::vector<Gres> read_gres(std::string_view text) {
  std::vector<Gres> all;
  for (const std::string_view part : split(text, ',')) {
    std::vector<std::string_view> words = split(part, ':');
    Gres gres{.name = std::string{words[0]}, .type = {}, .count = 1};
    if (words.size() > 1) {
      if (const auto count = count_in(words.back())) {
        gres.count = count;
        words.pop_back();
      }
      if (words.size() > 1) gres.type = std::string{words[1]};
      if (words.size() > 2) gres.count = std::nullopt;
    }
    all.push_back(std::move(gres));
  }
  return all;
}

std::optional<long> greatest_index(std::string_view array) {
  const auto is_bad = [](char mark, std::string_view text) {
    const std::size_t at = text.find(mark);
    return at != text.npos && !is_count(text.substr(at + 1));
  };
  if (is_bad('%', array)) return std::nullopt;
  long greatest = 0;
  for (const std::string_view part : split(array.substr(0, array.find('%')), ',')) {
    const auto ends = split(part.substr(0, part.find(':')), '-');
    if (is_bad(':', part) || ends.size() > 2) return std::nullopt;
    for (const std::string_view end : ends) {
      const long index = whole_number(end).value_or(-1);
      if (index < 0) return std::nullopt;
      greatest = std::max(greatest, index);
    }
  }
  return greatest;
}

std::string_view signal_name(std::string_view text) {
  const auto number = whole_number(text);
  if (text.size() > 3 && core::equal_ignoring_case(text.substr(0, 3), "SIG")) text.remove_prefix(3);
  for (const auto& row : option_rows("signals"))
    if (core::equal_ignoring_case(row[0], text) || number == whole_number(row[1])) return row[0];
  return number && *number > 0 ? text : std::string_view{};
}

std::optional<SignalAsked> read_signal(std::string_view text) {
  SignalAsked asked;
  for (; text.starts_with("B:") || text.starts_with("R:") || text.starts_with("BR:");
       text.remove_prefix(text.find(':') + 1))
    asked.is_to_shell |= text.front() == 'B';
  const std::size_t at = text.find('@');
  if (at != text.npos) asked.seconds = whole_number(text.substr(at + 1)).value_or(-1);
  asked.name = signal_name(text.substr(0, at));
  if (asked.name.empty() || asked.seconds < 0 || asked.seconds > 65535) return std::nullopt;
  return asked;
}

std::optional<long> count_in(std::string_view text) {
  const auto number = whole_number(text);
  return number && *number >= 0 && *number <= 1'000'000'000 ? number : std::nullopt;
}

}  // namespace lockstep::site
