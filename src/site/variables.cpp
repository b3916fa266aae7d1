#include "site/variables.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <set>

#include "core/suggest.hpp"
#include "site/forms.hpp"
#include "site/text.hpp"

namespace lockstep::site {
namespace {

constexpr std::string_view variable_table =
#include "site/variable_table.txt"
    ;

constexpr std::size_t longest_name = 64;  ///< longer than any that there is, so that no text takes long

constexpr std::array<std::string_view, 2> misspelt_prefixes{"NCLL_", "NCC_"};

Family read_family(std::string_view line) {
  const std::size_t end = line.find(']');
  const bool is_open = line[end - 1] == '*';
  return {.prefix = line.substr(1, end - (is_open ? 2 : 1)), .reader = trim(line.substr(end + 1)), .is_open = is_open};
}

void read_name(std::string_view name, Family& family) {
  if (name.starts_with('*')) return;
  if (name.ends_with('*'))
    family.beginnings.push_back(name.substr(0, name.size() - 1));
  else
    family.names.push_back(name);
}

void read_line(std::string_view line, Family& family) {
  const std::size_t arrow = line.find(" -> "), equals = line.find(" = ");
  const auto names = split_words(line.substr(0, std::min(arrow, equals)));
  if (arrow != line.npos) {
    for (const std::string_view wrong : names) family.misnomers.emplace_back(wrong, line.substr(arrow + 4));
    return;
  }
  for (const std::string_view name : names) read_name(name, family);
  if (equals == line.npos) return;
  const std::string_view value = line.substr(equals + 3), form = value.substr(0, value.find(' '));
  for (const std::string_view name : names) family.rules.push_back({name, form, trim(value.substr(form.size()))});
}

/// The rule of `name` itself, else the one that all names of its family take that end so.
const Family::Rule* rule_of(std::string_view name) {
  for (const Family& family : families()) {
    if (!name.starts_with(family.prefix)) continue;
    const std::string_view own = name.substr(family.prefix.size());
    if (const auto* const rule = find_by(family.rules, own, &Family::Rule::name)) return rule;
    for (const Family::Rule& rule : family.rules)
      if (rule.name.starts_with('*') && own.ends_with(rule.name.substr(1)) && is_known_variable(name)) return &rule;
  }
  return nullptr;
}

std::string with_prefix(const Family& family, std::string_view name) {
  return std::string{family.prefix} + std::string{name};
}

/// "DISABLE_IB" and "IB_DISABLE" have the same.
std::vector<std::string_view> sorted_parts(std::string_view name) {
  auto parts = split(name, '_');
  std::ranges::sort(parts);
  return parts;
}

}  // namespace

const std::vector<Family>& families() {
  static const auto all = [] {
    std::vector<Family> read;
    for (const std::string_view line : split(variable_table, '\n')) {
      if (line.starts_with('['))
        read.push_back(read_family(line));
      else if (!line.empty() && !line.starts_with('#'))
        read_line(line, read.back());
    }
    return read;
  }();
  return all;
}

const Family* family_of(std::string_view name) {
  for (const Family& family : families())
    if (!family.prefix.empty() && name.starts_with(family.prefix) && name != family.prefix) return &family;
  return nullptr;
}

bool is_known_variable(std::string_view name) {
  static const auto known = [] {
    const auto names = known_variables();
    return std::set<std::string, std::less<>>{names.begin(), names.end()};
  }();
  if (known.contains(name)) return true;
  const Family* const family = family_of(name);
  return family != nullptr && starts_with_any(name.substr(family->prefix.size()), family->beginnings);
}

std::vector<std::string> known_variables() {
  std::vector<std::string> all;
  for (const Family& family : families())
    for (const std::string_view name : family.names) all.push_back(with_prefix(family, name));
  return all;
}

std::optional<std::string> right_name(std::string_view name) {
  for (const std::string_view prefix : misspelt_prefixes) {
    const std::string meant = "NCCL_" + std::string{name.substr(std::min(prefix.size(), name.size()))};
    if (name.starts_with(prefix) && is_known_variable(meant)) return meant;
  }
  const Family* const family = family_of(name);
  if (family == nullptr || is_known_variable(name)) return std::nullopt;
  const std::string_view own = name.substr(family->prefix.size());
  for (const auto& [wrong, right] : family->misnomers)
    if (own == wrong) return with_prefix(*family, right);
  const auto parts = sorted_parts(own);
  for (const std::string_view known : family->names)
    if (sorted_parts(known) == parts) return with_prefix(*family, known);
  return std::nullopt;
}

std::optional<std::string> near_variable(std::string_view name) {
  const Family* const family = family_of(name);
  if (family == nullptr || is_known_variable(name)) return std::nullopt;
  const std::string_view own = name.substr(family->prefix.size());
  if (own.size() > longest_name) return std::nullopt;
  // A slip is one letter in four at most: IB_SL and IB_TC are two of a kind, not one misspelt. Or a swap: blt, btl.
  std::size_t least = std::min<std::size_t>(2, own.size() / 4) + 1;
  std::string_view nearest;
  for (const std::string_view known : family->names) {
    const std::size_t distance = core::edit_distance(own, known);
    const bool is_swap = distance == 1 && own.size() == known.size() &&
                         std::is_permutation(own.begin(), own.end(), known.begin(), known.end());
    if (distance >= least && !is_swap) continue;
    least = distance;
    nearest = known;
  }
  return nearest.empty() ? std::nullopt : std::optional{with_prefix(*family, nearest)};
}

std::string_view named_elsewhere(std::string_view name) {
  const Family::Rule* const rule = rule_of(name);
  return rule == nullptr || rule->form != "like" ? std::string_view{} : rule->words;
}

std::string expected_instead(std::string_view name, std::string_view value) {
  const Family::Rule* const rule = rule_of(name);
  if (rule == nullptr || rule->form == "like" || value.empty()) return "";
  return expected_of(rule->form, rule->words, trim(value));
}

}  // namespace lockstep::site
