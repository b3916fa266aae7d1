#include <nlohmann/json.hpp>

#include "report/comparison.hpp"

namespace lockstep::report {
namespace {

using Json = nlohmann::ordered_json;  // keys in the order written here

Json optional_number(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json change_percent(const std::optional<double>& ratio) { return ratio ? Json(percent(*ratio)) : Json(nullptr); }

// How one side compares with the other; the schema defines the quantity.
void add_shift(Json& json, const Compared& row) {
  const auto end = [&](double core::Interval::*which) {
    return row.ratio_95 ? Json(percent((*row.ratio_95).*which)) : Json(nullptr);
  };
  json["change_percent"] = change_percent(row.ratio);
  json["change_percent_low"] = end(&core::Interval::low);
  json["change_percent_high"] = end(&core::Interval::high);
  json["effect"] = row.effect;
  json["p_slower"] = row.p_slower;
  json["told_from_percent"] = change_percent(row.told_from);
}

Json row_json(const Compared& row) {
  const Subject& s = row.subject;
  Json json{{"bytes", s.bytes},
            {"dtype", s.dtype},
            {"op", s.op},
            {"algorithm", s.algorithm},
            {"collective", s.collective},
            {"in_place", s.in_place},
            {"verdict", name(row.verdict)},
            {"visits_before", row.n_before},
            {"visits_now", row.n_now},
            {"pairs", row.n_pairs},
            {"time_us_before", optional_number(row.before_us)},
            {"time_us_now", optional_number(row.now_us)}};
  add_shift(json, row);
  return json;
}

Json together_json(const Compared& all, bool is_by_launch) {
  Json json{{"verdict", name(all.verdict)},
            {"unit", is_by_launch ? "launch" : "round"},
            {"units_before", all.n_before},
            {"units_now", all.n_now}};
  add_shift(json, all);
  return json;
}

}  // namespace

Json to_json(const Comparison& comparison) {
  Json rows = Json::array();
  for (const Compared& row : comparison.rows) rows.push_back(row_json(row));
  return {
      {"baseline", comparison.files},
      {"launches_now", comparison.n_launches_now},
      {"tolerance_percent", 100 * comparison.tolerance},
      {"slower", comparison.is_slower()},
      {"changes", comparison.changes},
      {"together", comparison.overall ? together_json(*comparison.overall, comparison.is_by_launch) : Json(nullptr)},
      {"rows", rows}};
}

}  // namespace lockstep::report
