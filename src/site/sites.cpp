#include "site/sites.hpp"

#include <algorithm>

#include "site/text.hpp"

namespace lockstep::site {

const Site* find_site(std::span<const Site> sites, std::string_view name) { return find_by(sites, name, &Site::name); }

const Kind* find_kind(const Site& site, std::string_view constraint) {
  const std::set<std::string> wanted = features_of(constraint);
  const Kind* best = nullptr;
  for (const Kind& kind : site.kinds) {
    const bool has_all = std::ranges::includes(wanted, kind.features);
    if (has_all && (best == nullptr || kind.features.size() > best->features.size())) best = &kind;
  }
  return best;
}

std::set<std::string> features_of(std::string_view constraint) {
  const auto is_between = [](char c) { return std::string_view{"&|,()[]*\"'"}.find(c) != std::string_view::npos; };
  std::string text{constraint};
  std::ranges::replace_if(text, is_between, ' ');
  const auto words = split_words(text);
  return {words.begin(), words.end()};
}

std::string site_of(std::span<const Site> sites, std::string_view asked, std::string_view marked,
                    std::string_view sourced, std::string_view path) {
  if (!asked.empty()) return std::string{asked};
  if (!marked.empty()) return std::string{marked};
  const std::string_view folder = path.substr(0, path.size() - std::min(path.size(), file_name(path).size() + 1));
  for (const std::string_view name : {sourced, sourced.substr(0, sourced.find('-')), file_name(folder)})
    if (find_site(sites, name) != nullptr) return std::string{name};
  return "";
}

}  // namespace lockstep::site
