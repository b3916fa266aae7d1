#include "report/results.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/dtype.hpp"
#include "core/error.hpp"
#include "core/json.hpp"

namespace lockstep::report {
namespace {

using Parsed = nlohmann::json;

constexpr int version_read = 1;
constexpr double most_us = 1e12;           // eleven days
constexpr std::size_t most_visits = 1000;  // as reduce_all makes; more would take memory without end

struct Fact {
  std::string_view key;
  bool must_agree;
};

constexpr std::string_view ranks_per_node = "ranks_per_node";  // of the placement
constexpr std::string_view device = "device";                  // its name
constexpr std::string_view nccl_version = "nccl_version";      // of the device

constexpr std::array facts{Fact{"ranks", true},
                           Fact{"nodes", true},
                           Fact{ranks_per_node, true},
                           Fact{"simulated_nodes", true},
                           Fact{device, true},
                           Fact{"cpu_model", true},
                           Fact{"instruction_set", true},
                           Fact{"build_type", true},
                           Fact{"sync", true},
                           Fact{"buffers", true},
                           Fact{"lockstep", false},
                           Fact{"compiler", false},
                           Fact{"mpi_library", false},
                           Fact{"mpi_thread_level", false},
                           Fact{nccl_version, false},
                           Fact{"hosts", false},
                           Fact{"binding", false},
                           Fact{"kernel", false},
                           Fact{"governor", false},
                           Fact{"transparent_huge_pages", false},
                           Fact{"page_bytes", false},
                           Fact{"variables", false}};

constexpr const char* again = "measure it again: reduce_all ... --json FILE";

using core::JsonField, core::JsonKind, core::JsonRule;

// Files from before there were GPUs, and those of vectors on the host, have no device; graphs and registered vectors
// came later.
constexpr std::array device_fields{JsonField{"name", core::json_text}, JsonField{"shared"}, JsonField{nccl_version},
                                   JsonField{"register", core::json_text, false}, JsonField{"graph", {}, false}};
constexpr std::array node_fields{JsonField{"node", core::json_whole}};
constexpr JsonRule place_rule{.kind = JsonKind::object, .fields = node_fields};
constexpr std::array facts_fields = [] {
  std::array<JsonField, facts.size()> fields{};
  for (std::size_t i = 0; i < facts.size(); ++i) fields[i] = {.name = facts[i].key};
  for (JsonField& field : fields) {
    if (field.name == ranks_per_node)
      field = {.name = "placement", .rule = {.kind = JsonKind::list, .each = &place_rule}};
    if (field.name == device)
      field = {.name = device,
               .rule = {.kind = JsonKind::object, .may_be_null = true, .fields = device_fields},
               .is_required = false};
    if (field.name == nccl_version) field.is_required = false;  // of the device
  }
  return fields;
}();
constexpr JsonRule one_time{.kind = JsonKind::number, .low = 1 / most_us, .high = most_us};
constexpr JsonRule time_list{.kind = JsonKind::list, .most = most_visits, .each = &one_time};
constexpr JsonRule distance{.kind = JsonKind::number, .low = 1 / most_us, .high = most_us, .may_be_null = true};
constexpr JsonRule distance_list{.kind = JsonKind::list, .most = most_visits, .each = &distance};
constexpr std::array row_fields{
    JsonField{"collective", core::json_text}, JsonField{"in_place", core::json_boolean},
    JsonField{"dtype", core::json_text},      JsonField{"op", core::json_text},
    JsonField{"algorithm", core::json_text},  JsonField{"bytes", core::json_whole},
    JsonField{"time_us", time_list},          JsonField{"core_round_trip_ns", distance_list}};
constexpr JsonRule row_rule{.kind = JsonKind::object, .fields = row_fields};
// Checks only fields that show whether the file is a measurement. A vector has fewer than 2^48 elements.
constexpr JsonRule vector_size{.kind = JsonKind::whole, .most = std::uint64_t{1} << 48};
constexpr JsonRule wrong_elements{.kind = JsonKind::whole, .may_be_null = true};
constexpr std::array total_fields{JsonField{"bytes", vector_size}, JsonField{"count", vector_size},
                                  JsonField{"dtype", core::json_text}, JsonField{"wrong", wrong_elements}};
constexpr JsonRule total_rule{.kind = JsonKind::object, .fields = total_fields};
constexpr std::array result_fields{JsonField{"meta", {.kind = JsonKind::object, .fields = facts_fields}},
                                   JsonField{"complete", core::json_boolean},
                                   JsonField{"results", {.kind = JsonKind::list, .each = &total_rule}},
                                   JsonField{"visits", {.kind = JsonKind::list, .each = &row_rule}, false}};
constexpr JsonRule result_rule{.kind = JsonKind::object, .fields = result_fields};

// The version determines the fields. A result has no deeper nesting.
constexpr std::array version_fields{JsonField{"schema"}, JsonField{"schema_version"}};
constexpr core::JsonDocument result_document{.what = "a result of reduce_all",
                                             .rule = {.kind = JsonKind::object, .fields = version_fields},
                                             .fix = again,
                                             .most_bytes = std::size_t{1} << 30,
                                             .deepest = 16};

std::string as_text(const Parsed& json) {
  return json.is_string() ? json.get<std::string>() : json.dump(-1, ' ', false, Parsed::error_handler_t::replace);
}

// "2, 2, 1" of three nodes.
std::string count_ranks_per_node(const Parsed& placement) {
  std::map<std::uint64_t, int> n_ranks;
  for (const Parsed& place : placement) ++n_ranks[place.at("node").get<std::uint64_t>()];
  std::vector<int> counts;
  for (const auto& [node, n] : n_ranks) counts.push_back(n);
  return fmt::format("{}", fmt::join(counts, ", "));
}

bool has_device(const Parsed& meta) { return meta.contains(device) && !meta.at(std::string{device}).is_null(); }

std::string read_device(const Parsed& meta) {
  if (!has_device(meta)) return "host";
  const Parsed& json = meta.at(std::string{device});
  const std::string registered = json.value("register", "none");
  return json.at("name").get<std::string>() + (json.at("shared") == true ? ", shared by ranks" : "") +
         (json.contains("graph") && json.at("graph") == true ? ", calls replayed in a graph" : "") +
         (registered != "none" ? fmt::format(", vectors registered ({})", registered) : "");
}

std::string read_fact(const Parsed& meta, std::string_view key) {
  if (key == ranks_per_node) return count_ranks_per_node(meta.at("placement"));
  if (key == device) return read_device(meta);
  if (key == nccl_version)
    return has_device(meta) ? as_text(meta.at(std::string{device}).at(std::string{nccl_version})) : "none";
  return as_text(meta.at(std::string{key}));
}

std::vector<std::pair<std::string, std::string>> read_facts(const Parsed& meta) {
  std::vector<std::pair<std::string, std::string>> values;
  for (const Fact& fact : facts) values.emplace_back(fact.key, read_fact(meta, fact.key));
  return values;
}

Subject read_subject(const Parsed& row) {
  return {.collective = row.at("collective"),
          .in_place = row.at("in_place"),
          .dtype = row.at("dtype"),
          .op = row.at("op"),
          .algorithm = row.at("algorithm"),
          .bytes = row.at("bytes")};
}

Series read_series(const Parsed& row, const std::string& file, const std::string& field) {
  Series series{read_subject(row), {}};
  const Parsed &times = row.at("time_us"), &distances = row.at("core_round_trip_ns");
  if (times.size() != distances.size())
    core::refuse_field(file, field, fmt::format("has {} times and {} round trips", times.size(), distances.size()),
                       "the same number of both", again);
  for (std::size_t i = 0; i < times.size(); ++i) {
    Visit visit{.time_us = times[i].get<double>()};
    if (!distances[i].is_null()) visit.core_round_trip_ns = distances[i].get<double>();
    series.visits.push_back(visit);
  }
  return series;
}

/// Returns the number of wrong elements.
std::uint64_t check_table(const Parsed& rows, const std::string& file) {
  std::uint64_t n_wrong = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Parsed& row = rows[i];
    const auto dtype = core::find_dtype(row.at("dtype").get<std::string>());
    const std::uint64_t n = row.at("count"), bytes = row.at("bytes");
    if (!dtype)
      core::refuse_field(file, fmt::format("results[{}].dtype", i), "is '" + row.at("dtype").get<std::string>() + "'",
                         "an element type", again);
    if (n * core::size_of(*dtype) != bytes)
      core::refuse_field(file, fmt::format("results[{}].count", i), fmt::format("is {}", n),
                         fmt::format("{} bytes of {}", bytes, core::name(*dtype)), again);
    if (!row.at("wrong").is_null()) n_wrong += row.at("wrong").get<std::uint64_t>();
  }
  return n_wrong;
}

Parsed read_json(std::string_view text, const std::string& name) {
  Parsed json = core::parse_json<Parsed>(text, name, result_document);
  const Parsed &schema = json.at("schema"), &version = json.at("schema_version");
  if (schema != "lockstep.reduce_all" || version != version_read)
    core::refuse_field(name, "", fmt::format("its schema is {}, version {}", as_text(schema), as_text(version)),
                       fmt::format("lockstep.reduce_all, version {}", version_read), again);
  core::check_json(json, name, "", result_rule, again);
  return json;
}

// For two objects, returns the names of differing members, because variables of an environment are many and long. Empty
// for other values.
std::string name_differing(const std::string& then, const std::string& now) {
  const Parsed before = Parsed::parse(then, nullptr, false), after = Parsed::parse(now, nullptr, false);
  if (!before.is_object() || !after.is_object()) return "";
  std::set<std::string> names;
  for (const auto* side : {&before, &after})
    for (const auto& [name, value] : side->items()) {
      const Parsed& other = side == &before ? after : before;
      if (!other.contains(name) || other.at(name) != value) names.insert(name);
    }
  return fmt::format("{} differ", fmt::join(names, ", "));
}

// Reads regular files only, because a device or a pipe might never end.
std::string read_whole(const std::string& path, std::string_view flag) {
  const auto refuse = [&](std::string_view why) {
    core::fail_usage({.what = fmt::format("cannot read '{}': {}", path, why),
                      .where = std::string{flag},
                      .expected = "a result of reduce_all --json FILE",
                      .fix = "check the name; several files are separated by commas"});
  };
  std::error_code error;
  const bool is_regular = std::filesystem::is_regular_file(path, error);
  if (error) refuse(error.message());
  if (!is_regular) refuse("it is not a regular file");
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) refuse(error.message());
  if (size > result_document.most_bytes) refuse(fmt::format("it has {} bytes", size));
  if (size == 0) refuse("it is empty");
  std::ifstream file{path, std::ios::binary};
  if (!file.is_open()) refuse(std::strerror(errno));
  std::string text{std::istreambuf_iterator<char>{file}, {}};
  if (file.bad()) refuse("it could not be read to its end");
  return text;
}

}  // namespace

Results parse_results(std::string_view text, const std::string& name) {
  const Parsed json = read_json(text, name);
  Results results{.name = name, .facts = read_facts(json.at("meta")), .series = {}};
  results.is_complete = json.at("complete");
  results.n_wrong = check_table(json.at("results"), name);
  if (!json.contains("visits")) return results;
  const Parsed& visits = json.at("visits");
  std::set<Subject> known;
  for (std::size_t i = 0; i < visits.size(); ++i) {
    const std::string field = fmt::format("visits[{}]", i);
    results.series.push_back(read_series(visits[i], name, field));
    if (!known.insert(results.series.back().subject).second)
      core::refuse_field(name, field, "occurs twice", "each row once", again);
  }
  return results;
}

Results read_results(const std::string& path, std::string_view flag) {
  Results results = parse_results(read_whole(path, flag), path);
  const bool has_visits = std::ranges::any_of(results.series, [](const Series& s) { return !s.visits.empty(); });
  if (!has_visits)
    core::fail_usage({.what = fmt::format("{} has no visits, but only visits are compared", path),
                      .where = "visits",
                      .expected = "the file of a complete run with --json",
                      .fix = "measure again with fewer sizes or a longer --max-time: reduce_all ... --json FILE"});
  return results;
}

void require_comparable(const Results& before, const Results& now, std::string_view flag) {
  std::vector<std::string> differing;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    if (facts[i].must_agree && before.facts[i].second != now.facts[i].second)
      differing.push_back(fmt::format("{} is {}, not {}", facts[i].key, now.facts[i].second, before.facts[i].second));
  }
  if (differing.empty()) return;
  core::fail_usage({.what = fmt::format("{} was measured under other conditions: in {} {}", before.name, now.name,
                                        fmt::join(differing, "; ")),
                    .where = std::string{flag},
                    .expected = "the same ranks, nodes, processors and flags of measurement",
                    .fix = "measure under the same conditions, or make a new baseline: reduce_all ... --json FILE"});
}

std::vector<std::string> name_changes(const Results& before, const Results& now) {
  std::vector<std::string> changes;
  for (std::size_t i = 0; i < before.facts.size(); ++i) {
    const auto& [key, then] = before.facts[i];
    const std::string& since = now.facts[i].second;
    if (then == since) continue;
    const std::string names = name_differing(then, since);
    changes.push_back(names.empty() ? fmt::format("{}: {}, now {}", key, then, since)
                                    : fmt::format("{}: {}", key, names));
  }
  return changes;
}

}  // namespace lockstep::report
