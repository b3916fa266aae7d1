#include "training/lint/site_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>

#include "core/error.hpp"
#include "core/suggest.hpp"
#include "training/toml_library.hpp"

namespace lockstep::training::lint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view expected_file = "a file as share/sites.toml";

[[noreturn]] void fail_at(const std::string& file, const toml::source_region& at, std::string what,
                          std::string expected, std::string fix = "") {
  core::fail_usage({.what = std::move(what),
                    .where = fmt::format("{}:{}:{}", file, at.begin.line, at.begin.column),
                    .expected = std::move(expected),
                    .fix = std::move(fix)});
}

/// Each key of `table` names a table.
template <class Read>
void for_each_table(const toml::table& table, const std::string& file, Read read) {
  for (const auto& [key, node] : table) {
    const toml::table* const inner = node.as_table();
    if (inner == nullptr)
      fail_at(file, node.source(), fmt::format("'{}' is no table", key.str()), std::string{expected_file});
    read(std::string{key.str()}, *inner);
  }
}

/// Reads one table: each key has something that takes its value.
class Keys {
 public:
  Keys(const toml::table& table, const std::string& file) : table_{table}, file_{file} {}

  Keys& text(const std::string& key, std::string& target) {
    return take(key, "a text in quotes", [&target](const toml::node& node) {
      if (const auto* const value = node.as_string()) target = value->get();
      return node.is_string();
    });
  }
  Keys& number(const std::string& key, int& target) {
    return take(key, "a whole number from 0 to 1000000000", [&target](const toml::node& node) {
      const auto* const value = node.as_integer();
      const bool fits = value != nullptr && value->get() >= 0 && value->get() <= 1'000'000'000;
      if (fits) target = static_cast<int>(value->get());
      return fits;
    });
  }
  Keys& truth(const std::string& key, bool& target) {
    return take(key, "true or false", [&target](const toml::node& node) {
      if (const auto* const value = node.as_boolean()) target = value->get();
      return node.is_boolean();
    });
  }
  Keys& texts(const std::string& key, std::vector<std::string>& target) {
    return take(key, "a list of texts", [&target](const toml::node& node) {
      const toml::array* const array = node.as_array();
      if (array == nullptr) return false;
      for (const toml::node& item : *array) {
        if (!item.is_string()) return false;
        target.push_back(item.as_string()->get());
      }
      return true;
    });
  }
  Keys& tables(const std::string& key, std::function<void(const std::string& name, const toml::table&)> read) {
    return take(key, "a table", [this, read = std::move(read)](const toml::node& node) {
      if (const toml::table* const table = node.as_table()) for_each_table(*table, file_, read);
      return node.is_table();
    });
  }

  /// After all keys are known: refuses others.
  void read() const {
    for (const auto& [key, node] : table_) {
      const auto known = takers_.find(std::string{key.str()});
      if (known == takers_.end()) refuse(std::string{key.str()}, node);
      if (!known->second.second(node))
        fail_at(file_, node.source(), fmt::format("a wrong value of '{}'", key.str()), known->second.first);
    }
  }

 private:
  using Taker = std::function<bool(const toml::node&)>;

  Keys& take(const std::string& key, std::string expected, Taker taker) {
    takers_[key] = {std::move(expected), std::move(taker)};
    return *this;
  }

  [[noreturn]] void refuse(const std::string& key, const toml::node& node) const {
    std::vector<std::string> names;
    for (const auto& [name, taker] : takers_) names.push_back(name);
    const auto near = core::near_miss(key, names);
    fail_at(file_, node.source(), fmt::format("unknown key '{}'", key), "one of " + core::join(names),
            near ? fmt::format("did you mean '{}'?", *near) : "");
  }

  const toml::table& table_;
  const std::string& file_;
  std::map<std::string, std::pair<std::string, Taker>> takers_{};
};

site::Nodes read_nodes(const toml::table& table, const std::string& file) {
  site::Nodes nodes;
  Keys{table, file}
      .number("most", nodes.most)
      .number("minutes", nodes.minutes)
      .number("cores", nodes.cores)
      .number("cpu_most", nodes.cpu_most)
      .number("cpu_cores", nodes.cpu_cores)
      .number("memory_gb", nodes.memory_gb)
      .number("cpu_memory_gb", nodes.cpu_memory_gb)
      .number("gpus", nodes.gpus)
      .text("gpu", nodes.gpu)
      .read();
  return nodes;
}

site::Fabric fabric_of(const std::string& word, const toml::table& table, const std::string& file) {
  if (word.empty()) return site::Fabric::unknown;
  if (word == "slingshot") return site::Fabric::slingshot;
  if (word == "infiniband") return site::Fabric::infiniband;
  fail_at(file, table.source(), fmt::format("unknown fabric '{}'", word), "slingshot or infiniband");
}

site::Site read_site(std::string name, const toml::table& table, const std::string& file) {
  site::Site site{.name = std::move(name)};
  std::string fabric;
  Keys{table, file}
      .text("title", site.title)
      .text("system", site.system)
      .text("launcher", site.launcher)
      .text("mpi_family", site.mpi_family)
      .text("mpi_flag", site.mpi_flag)
      .text("fabric", fabric)
      .texts("needs", site.needs)
      .texts("wants", site.wants)
      .number("most_gpus", site.most_gpus)
      .texts("gone_gpus", site.gone_gpus)
      .texts("needs_company", site.needs_company)
      .texts("not_here", site.not_here)
      .text("account_ends", site.account_ends)
      .text("cpu_qos_ends", site.cpu_qos_ends)
      .number("most_index", site.most_index)
      .texts("replaced", site.replaced)
      .truth("has_lmod", site.has_lmod)
      .tables("partition",
              [&](const std::string& partition, const toml::table& nodes) {
                site.partitions.push_back({partition, read_nodes(nodes, file)});
              })
      .tables("kind",
              [&](const std::string& constraint, const toml::table& nodes) {
                site.kinds.push_back({site::features_of(constraint), read_nodes(nodes, file)});
              })
      .read();
  site.fabric = fabric_of(fabric, table, file);
  return site;
}

toml::table parse(std::string_view text, const std::string& file) {
  // Up to 3.4 toml++ has undefined behaviour for some of what is refused here (its issues 190 and 295).
  const auto refuse_from = [&](std::size_t at, std::string what) {
    if (at >= text.size()) return;
    core::fail_usage({.what = std::move(what),
                      .where = fmt::format("{}:{}", file, 1 + std::ranges::count(text.substr(0, at), '\n')),
                      .expected = std::string{expected_file},
                      .fix = "write it in ASCII, on one line"});
  };
  const auto is_beyond_ascii = [](char c) { return static_cast<unsigned char>(c) >= 0x80; };
  refuse_from(static_cast<std::size_t>(std::ranges::find_if(text, is_beyond_ascii) - text.begin()),
              "a character beyond ASCII");
  refuse_from(std::min(text.find("\"\"\""), text.find("'''")), "a text of several lines");
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    fail_at(file, error.source(), std::string{error.description()}, std::string{expected_file});
  } catch (const BrokenAssertion&) {
    core::fail_usage({.what = "brackets or signs that make no value",
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
  for_each_table(table, file, [&](std::string name, const toml::table& one) {
    sites.push_back(read_site(std::move(name), one, file));
  });
  if (site::find_site(sites, "generic") == nullptr) sites.push_back({.name = "generic", .title = "any cluster"});
  return sites;
}

}  // namespace lockstep::training::lint
