#include "training/lint/site_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/characters.hpp"
#include "core/error.hpp"
#include "core/suggest.hpp"
#include "training/toml_library.hpp"

namespace lockstep::site {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Nodes, most, minutes, cores, cpu_most, cpu_cores, memory_gb,
                                                cpu_memory_gb, gpus, gpu)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Site, title, system, launcher, mpi_family, mpi_flag, needs, wants,
                                                most_gpus, gone_gpus, needs_company, not_here, account_ends,
                                                cpu_qos_ends, most_index, replaced, has_lmod)

}  // namespace lockstep::site

namespace lockstep::training::lint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view expected_file = "a file in the form of share/lockstep/sites.toml";

[[noreturn]] void fail_at(const std::string& file, const toml::source_region& at, std::string what,
                          std::string expected, std::string fix = "") {
  core::fail_usage({.what = std::move(what),
                    .where = fmt::format("{}:{}:{}", file, at.begin.line, at.begin.column),
                    .expected = std::move(expected),
                    .fix = std::move(fix)});
}

using Json = nlohmann::json;

/// What a key takes whose value in `model` is of this type: the fields and keys of a site are their own table.
std::string expectation_of(const Json& model) {
  if (model.is_string()) return "a text in quotes";
  if (model.is_boolean()) return "true or false";
  if (model.is_array()) return "a list of texts";
  return "a whole number from 0 to 1000000000";
}

/// Nothing if the node is of another type than `model`.
std::optional<Json> value_of(const toml::node& node, const Json& model) {
  if (model.is_string() && node.is_string()) return node.as_string()->get();
  if (model.is_boolean() && node.is_boolean()) return node.as_boolean()->get();
  const auto* const number = node.as_integer();
  if (model.is_number() && number != nullptr && number->get() >= 0 && number->get() <= 1'000'000'000)
    return number->get();
  if (!model.is_array() || !node.is_array()) return std::nullopt;
  Json texts = Json::array();
  for (const toml::node& item : *node.as_array()) {
    if (!item.is_string()) return std::nullopt;
    texts.push_back(item.as_string()->get());
  }
  return texts;
}

const toml::table& require_table(const toml::key& key, const toml::node& node, const std::string& file) {
  if (!node.is_table())
    fail_at(file, node.source(), fmt::format("'{}' is no table", key.str()), std::string{expected_file});
  return *node.as_table();
}

/// A table with the keys of `model`, each with a value of its type; one that is missing is as in `model`. Where
/// `model` has a table that is named "*", any name will do.
Json read_table(const toml::table& table, const Json& model, const std::string& file) {
  Json read = model.contains("*") ? Json::object() : model;
  for (const auto& [key, node] : table) {
    const std::string name{key.str()};
    if (!model.contains("*") && !model.contains(name)) {
      std::vector<std::string> names;
      for (const auto& [known, value] : model.items()) names.push_back(known);
      const auto near = core::near_miss(name, names);
      fail_at(file, node.source(), fmt::format("unknown key '{}'", name), "one of " + core::join(names),
              near ? fmt::format("did you mean '{}'?", *near) : "");
    }
    const Json& inner = model[model.contains("*") ? "*" : name];
    if (inner.is_object()) {
      read[name] = read_table(require_table(key, node, file), inner, file);
      continue;
    }
    const auto value = value_of(node, inner);
    if (!value) fail_at(file, node.source(), fmt::format("'{}' has a wrong value", name), expectation_of(inner));
    read[name] = *value;
  }
  return read;
}

site::Fabric fabric_of(const std::string& word, const toml::table& table, const std::string& file) {
  if (word.empty()) return site::Fabric::unknown;
  if (word == "slingshot") return site::Fabric::slingshot;
  if (word == "infiniband") return site::Fabric::infiniband;
  fail_at(file, table.source(), fmt::format("unknown fabric '{}'", word), "slingshot or infiniband");
}

site::Site read_site(const std::string& name, const toml::table& table, const std::string& file) {
  Json model = site::Site{};
  model.update({{"fabric", ""}, {"partition", {{"*", site::Nodes{}}}}, {"kind", {{"*", site::Nodes{}}}}});
  const Json read = read_table(table, model, file);
  auto site = read.get<site::Site>();
  site.name = name;
  site.fabric = fabric_of(read["fabric"], table, file);
  for (const auto& [partition, nodes] : read["partition"].items())
    if (partition != "*") site.partitions.push_back({partition, nodes});
  for (const auto& [features, nodes] : read["kind"].items())
    if (features != "*") site.kinds.push_back({site::features_of(features), nodes});
  return site;
}

toml::table parse(std::string_view text, const std::string& file) {
  // Up to 3.4 toml++ has undefined behaviour for some of what is refused here (its issues 190 and 295).
  const auto refuse_from = [&](std::size_t at, std::string what, std::string fix) {
    if (at >= text.size()) return;
    core::fail_usage({.what = std::move(what),
                      .where = fmt::format("{}:{}", file, 1 + std::ranges::count(text.substr(0, at), '\n')),
                      .expected = std::string{expected_file},
                      .fix = std::move(fix)});
  };
  const auto is_beyond_ascii = [](char c) { return static_cast<unsigned char>(c) >= 0x80; };
  const auto odd = static_cast<std::size_t>(std::ranges::find_if(text, is_beyond_ascii) - text.begin());
  refuse_from(odd, odd < text.size() ? core::name_of_first(text.substr(odd)) + ", a character beyond ASCII" : "",
              "write it in ASCII");
  refuse_from(std::min(text.find("\"\"\""), text.find("'''")), "a text of several lines", "write it on one line");
  // Each dot of a key is a table within a table, and the library descends into them one by one.
  constexpr std::size_t longest_line = 1000;
  for (std::size_t at = 0, end = 0; at < text.size(); at = end + 1) {
    end = std::min(text.find('\n', at), text.size());
    if (end - at > longest_line)
      refuse_from(at, fmt::format("a line of more than {} characters", longest_line), "break the line");
  }
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    fail_at(file, error.source(), std::string{error.description()}, std::string{expected_file});
  } catch (const BrokenAssertion&) {
    core::fail_usage({.what = "a value that cannot be read: its brackets or signs are wrong",
                      .where = file,
                      .expected = std::string{expected_file},
                      .fix = ""});
  }
}

}  // namespace

std::string find_site_file() {
  if (const char* const own = std::getenv("LOCKSTEP_SITES"); own != nullptr && *own != '\0') return own;
  std::error_code reason;
  const fs::path program = fs::read_symlink("/proc/self/exe", reason);
  const fs::path installed = program.parent_path().parent_path() / "share" / "lockstep" / "sites.toml";
  if (!reason && fs::exists(installed, reason)) return installed.string();
  return LOCKSTEP_SOURCE_SITES;
}

std::vector<site::Site> read_sites(std::string_view text, const std::string& file) {
  const toml::table table = parse(text, file);
  std::vector<site::Site> sites;
  for (const auto& [key, node] : table)
    sites.push_back(read_site(std::string{key.str()}, require_table(key, node, file), file));
  if (site::find_site(sites, "generic") == nullptr) sites.push_back({.name = "generic", .title = "any cluster"});
  return sites;
}

}  // namespace lockstep::training::lint
