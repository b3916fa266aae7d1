#include "training/doctor/finding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "core/suggest.hpp"

namespace lockstep::training::doctor {
namespace {

constexpr std::size_t most_places = 3;
constexpr std::size_t most_values = 4;

std::string name_places(const std::vector<std::string>& places) {
  if (places.size() <= most_places + 1) return core::join(places);
  return fmt::format("{} and {} others", core::join(std::span{places}.first(most_places)), places.size() - most_places);
}

}  // namespace

std::string_view name(Verdict verdict) noexcept {
  switch (verdict) {
    case Verdict::skipped: return "skipped";
    case Verdict::ok: return "ok";
    case Verdict::note: return "note";
    case Verdict::warning: return "warning";
    case Verdict::fail: break;
  }
  return "fail";
}

Finding skip(std::string_view why) {
  return {.verdict = Verdict::skipped, .seen = fmt::format("not checked: {}", why)};
}

std::string describe(const Placed<std::string>& values) {
  std::vector<std::pair<std::string, std::vector<std::string>>> places_of;  // in the order of the places
  for (const auto& [place, value] : values) {
    auto known = std::ranges::find(places_of, value, [](const auto& entry) { return entry.first; });
    if (known == places_of.end()) known = places_of.insert(known, {value, {}});
    if (std::ranges::find(known->second, place) == known->second.end()) known->second.push_back(place);
  }
  if (places_of.size() == 1) return places_of.front().first;
  std::vector<std::string> parts;
  for (const auto& [value, places] : places_of) {
    if (parts.size() == most_values) break;
    parts.push_back(fmt::format("{} on {}", value, name_places(places)));
  }
  if (places_of.size() > most_values) parts.push_back(fmt::format("{} others", places_of.size() - most_values));
  return core::join(parts, "; ");
}

Finding merge(Placed<Finding> findings) {
  if (findings.empty()) return skip("there is nothing to check");
  std::ranges::stable_sort(findings, std::ranges::greater{}, [](const auto& entry) { return entry.second.verdict; });
  const Finding& worst = findings.front().second;
  Placed<std::string> seen;
  for (const auto& [place, finding] : findings) seen.emplace_back(place, finding.seen);
  return {.verdict = worst.verdict, .seen = describe(seen), .fix = worst.fix};
}

}  // namespace lockstep::training::doctor
