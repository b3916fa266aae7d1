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
// Of what is nested deeper nothing is a result.
constexpr core::JsonDocument result_document{.what = "a result of reduce_all",
                                             .rule = {.kind = core::JsonKind::object},
                                             .fix = again,
                                             .most_bytes = std::size_t{1} << 30,
                                             .deepest = 16};

[[noreturn]] void fail(const std::string& what, const std::string& file, const std::string& key,
                       const std::string& expected) {
  core::fail_usage({.what = fmt::format("{}: {}", file, what), .where = key, .expected = expected, .fix = again});
}

// A value in a file, with the path that leads to it.
struct Node {
  const Parsed& json;
  const std::string& file;
  std::string path;

  [[nodiscard]] Node at(std::string_view key) const {
    if (!json.is_object()) refuse("an object");
    const auto found = json.find(key);
    const std::string below = path.empty() ? std::string{key} : fmt::format("{}.{}", path, key);
    if (found == json.end()) fail(fmt::format("has no {}", below), file, below, "a result of reduce_all");
    return {*found, file, below};
  }

  [[noreturn]] void refuse(const std::string& expected) const {
    fail(fmt::format("{} is {}", path.empty() ? "the file" : path, json.type_name()), file, path, expected);
  }

  [[nodiscard]] std::string text() const {
    if (!json.is_string()) refuse("a text");
    return json.get<std::string>();
  }

  [[nodiscard]] double positive() const {
    if (!json.is_number()) refuse("a number");
    const auto value = json.get<double>();
    if (!(value >= 1 / most_us && value <= most_us))
      fail(fmt::format("{} is {}", path, value), file, path, fmt::format("from {:g} to {:g}", 1 / most_us, most_us));
    return value;
  }

  [[nodiscard]] std::vector<Node> items() const {
    if (!json.is_array()) refuse("a list");
    std::vector<Node> nodes;
    for (std::size_t i = 0; i < json.size(); ++i) nodes.push_back({json[i], file, fmt::format("{}[{}]", path, i)});
    return nodes;
  }
};

std::string as_text(const Parsed& json) {
  return json.is_string() ? json.get<std::string>() : json.dump(-1, ' ', false, Parsed::error_handler_t::replace);
}

// "2, 2, 1" of three nodes.
std::string count_ranks_per_node(const Node& placement) {
  std::map<std::uint64_t, int> n_ranks;
  for (const Node& place : placement.items()) {
    const Node node = place.at("node");
    if (!node.json.is_number_unsigned()) node.refuse("the index of a node");
    ++n_ranks[node.json.get<std::uint64_t>()];
  }
  std::vector<int> counts;
  for (const auto& [node, n] : n_ranks) counts.push_back(n);
  return fmt::format("{}", fmt::join(counts, ", "));
}

// Files of before there were GPUs, and those of vectors on the host, have none.
std::string read_device(const Node& meta) {
  if (!meta.json.is_object()) meta.refuse("an object");
  const auto found = meta.json.find(device);
  if (found == meta.json.end() || found->is_null()) return "host";
  const Node node = meta.at(device);
  const auto graph = node.json.find("graph");  // since graphs were there
  const std::string registered = node.json.contains("register") ? node.at("register").text() : "none";  // likewise
  return node.at("name").text() + (node.at("shared").json == true ? ", shared by ranks" : "") +
         (graph != node.json.end() && *graph == true ? ", calls replayed in a graph" : "") +
         (registered != "none" ? fmt::format(", vectors registered ({})", registered) : "");
}

std::string read_fact(const Node& meta, std::string_view key) {
  if (key == ranks_per_node) return count_ranks_per_node(meta.at("placement"));
  if (key == device) return read_device(meta);
  if (key == nccl_version) return read_device(meta) == "host" ? "none" : as_text(meta.at(device).at(nccl_version).json);
  return as_text(meta.at(key).json);
}

std::vector<std::pair<std::string, std::string>> read_facts(const Node& meta) {
  std::vector<std::pair<std::string, std::string>> values;
  for (const Fact& fact : facts) values.emplace_back(fact.key, read_fact(meta, fact.key));
  return values;
}

Subject read_subject(const Node& row) {
  const Node in_place = row.at("in_place"), bytes = row.at("bytes");
  if (!in_place.json.is_boolean()) in_place.refuse("true or false");
  if (!bytes.json.is_number_unsigned()) bytes.refuse("a number of bytes");
  return {.collective = row.at("collective").text(),
          .in_place = in_place.json.get<bool>(),
          .dtype = row.at("dtype").text(),
          .op = row.at("op").text(),
          .algorithm = row.at("algorithm").text(),
          .bytes = bytes.json.get<std::uint64_t>()};
}

Series read_series(const Node& row) {
  Series series{read_subject(row), {}};
  const std::vector<Node> times = row.at("time_us").items(), distances = row.at("core_round_trip_ns").items();
  if (times.size() != distances.size() || times.size() > most_visits)
    fail(fmt::format("{} has {} times and {} round trips", row.path, times.size(), distances.size()), row.file,
         row.path, fmt::format("as many of both, at most {}", most_visits));
  for (std::size_t i = 0; i < times.size(); ++i) {
    Visit visit{.time_us = times[i].positive()};
    if (!distances[i].json.is_null()) visit.core_round_trip_ns = distances[i].positive();
    series.visits.push_back(visit);
  }
  return series;
}

void require_schema(const Node& file) {
  const Node schema = file.at("schema"), version = file.at("schema_version");
  const bool is_ours = schema.json == "lockstep.reduce_all" && version.json == version_read;
  if (!is_ours)
    fail(fmt::format("its schema is {}, version {}", as_text(schema.json), as_text(version.json)), file.file, "schema",
         fmt::format("lockstep.reduce_all, version {}", version_read));
}

// Of two objects the names of what differs: variables of an environment are many, and long. Nothing of other values.
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

// A device or a pipe might never end.
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
  if (!is_regular) refuse("it is no regular file");
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) refuse(error.message());
  if (size > result_document.most_bytes) refuse(fmt::format("it has {} bytes", size));
  if (size == 0) refuse("it is empty");
  std::ifstream file{path, std::ios::binary};
  if (!file.is_open()) refuse(std::strerror(errno));
  std::string text{std::istreambuf_iterator<char>{file}, {}};
  if (file.bad()) refuse("reading ended early");
  return text;
}

}  // namespace

Results parse_results(std::string_view text, const std::string& name) {
  const Parsed json = core::parse_json<Parsed>(text, name, result_document);
  const Node file{json, name, ""};
  require_schema(file);
  Results results{.name = name, .facts = read_facts(file.at("meta")), .series = {}};
  const Node complete = file.at("complete");
  if (!complete.json.is_boolean()) complete.refuse("true or false");
  results.is_complete = complete.json.get<bool>();
  if (!json.contains("visits")) return results;
  std::set<Subject> known;
  for (const Node& row : file.at("visits").items()) {
    results.series.push_back(read_series(row));
    if (!known.insert(results.series.back().subject).second)
      fail(fmt::format("{} is there twice", row.path), name, row.path, "each row once");
  }
  return results;
}

Results read_results(const std::string& path, std::string_view flag) {
  Results results = parse_results(read_whole(path, flag), path);
  const bool has_visits = std::ranges::any_of(results.series, [](const Series& s) { return !s.visits.empty(); });
  if (!has_visits)
    core::fail_usage({.what = fmt::format("{}: holds no visits, whose times are what is compared", path),
                      .where = "visits",
                      .expected = "those of a run with --json that nothing cut short",
                      .fix = "measure it again, for fewer sizes or with more --max-time: reduce_all ... --json FILE"});
  return results;
}

void require_comparable(const Results& before, const Results& now, std::string_view flag) {
  std::vector<std::string> differing;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    if (facts[i].must_agree && before.facts[i].second != now.facts[i].second)
      differing.push_back(fmt::format("{} is {}, not {}", facts[i].key, now.facts[i].second, before.facts[i].second));
  }
  if (differing.empty()) return;
  core::fail_usage({.what = fmt::format("{} was measured on something else: in {} {}", before.name, now.name,
                                        fmt::join(differing, "; ")),
                    .where = std::string{flag},
                    .expected = "the same ranks, nodes, processors and way of measuring",
                    .fix = "measure as then, or make a baseline for this: reduce_all ... --json FILE"});
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
