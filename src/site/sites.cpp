#include "site/sites.hpp"

#include <algorithm>
#include <utility>

#include "site/text.hpp"

namespace lockstep::site {

const Site* find_site(std::span<const Site> sites, std::string_view name) { return find_by(sites, name, &Site::name); }

const Partition* find_partition(const Site& site, std::string_view name) {
  return find_by(site.partitions, name, &Partition::name);
}

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
  std::set<std::string> features;
  std::string feature;
  for (const char c : constraint) {
    const bool is_between = std::string_view{"&|,()[]*\"' "}.find(c) != std::string_view::npos;
    if (!is_between) feature += c;
    if (is_between && !feature.empty()) features.insert(std::exchange(feature, {}));
  }
  if (!feature.empty()) features.insert(feature);
  return features;
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
