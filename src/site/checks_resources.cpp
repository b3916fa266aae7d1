// The resources of a PBS job: -l NAME=VALUE, -l select=[N:]NAME=VALUE[:...][+...], -l place=...
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "site/checks.hpp"
#include "site/text.hpp"

namespace lockstep::site {
namespace {

constexpr std::string_view refused = "the job is refused";

std::string meant_resource(std::string_view name, bool is_in_chunk, const Look& look) {
  if (!look.may_search()) return "";
  std::vector<std::string> names;
  for (const Option& option : pbs_resources_known())
    if (option.of == Of::host || (option.of == Of::chunk) == is_in_chunk) names.push_back(option.name);
  const auto near = near_name(name, names);
  return near ? fmt::format("did you mean {}?", *near) : "";
}

void check_resource(const Resource& resource, bool is_in_chunk, bool has_chunks, const Look& look) {
  const auto& [name, value, line] = resource;
  const Option* const option = find_option(pbs_resources_known(), name);
  if (option == nullptr) {  // sites have their own
    if (const std::string meant = meant_resource(name, is_in_chunk, look); !meant.empty())
      look.warning(line,
                   fmt::format("'{}' is no resource {}that is known here", name, is_in_chunk ? "of a chunk " : ""), "",
                   meant);
    return;
  }
  if (is_in_chunk && option->of == Of::job)
    return look.error(line, fmt::format("{} in select", name), fmt::format("it is of the whole job, and {}", refused),
                      fmt::format("-l {}={} by itself", name, value));
  if (!is_in_chunk && (option->of == Of::chunk || (option->of == Of::host && has_chunks)))
    return look.error(line, fmt::format("-l {} asks for the whole job", name),
                      option->of == Of::chunk ? fmt::format("it is a resource of a chunk, and {}", refused)
                                              : fmt::format("beside select {}: chunks say what nodes have", refused),
                      fmt::format("-l select=...:{}={}", name, value));
  if (const std::string expected = expected_of(option->form, option->words, value); !expected.empty())
    look.error(line, fmt::format("{} has the value '{}'", name, value), std::string{refused}, expected);
}

void check_chunk(std::string_view chunk, int line, const Look& look) {
  const auto parts = split(chunk, ':');
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t equals = parts[i].find('=');
    const std::string_view name = parts[i].substr(0, equals);
    const bool is_number = i == 0 && whole_number(parts[i]).value_or(0) > 0;
    if (is_number) continue;
    if (equals == parts[i].npos || name.empty() || equals + 1 == parts[i].size())
      return look.error(line, fmt::format("select has the part '{}'", parts[i]), std::string{refused},
                        "[N:]NAME=VALUE[:NAME=VALUE...], and + between chunks");
    if (!names.insert(name).second)
      return look.error(line, fmt::format("{} twice in one chunk of select", name), std::string{refused},
                        "leave one of the two out, or + between two chunks");
    check_resource({std::string{name}, std::string{parts[i].substr(equals + 1)}, line}, true, true, look);
  }
}

}  // namespace

void check_resources(const Look& look) {
  const auto resources = pbs_resources(look.script);
  const Resource* const select = last_resource(resources, "select");
  const Resource* const place = last_resource(resources, "place");
  const Resource* const nodes = last_resource(resources, "nodes");
  for (const Resource& resource : resources) {
    check_resource(resource, false, select != nullptr || place != nullptr, look);
    if (resource.name != "select") continue;
    for (const std::string_view chunk : split(resource.value, '+')) check_chunk(chunk, resource.line, look);
  }
  if (place != nullptr && select == nullptr && nodes == nullptr)
    look.error(place->line, "-l place without -l select", std::string{refused}, "-l select=N:ncpus=...");
  if (nodes != nullptr && (select != nullptr || place != nullptr))
    look.error(nodes->line, "-l nodes together with -l select or -l place",
               fmt::format("nodes= is the older form of both: {}", refused), "-l select=N:ncpus=...:mpiprocs=...");
  if (const Flag* const name = directive(look.script, "N");
      name != nullptr && name->value && whole_number(*name->value))
    look.warning(name->line, fmt::format("-N {} names the job", *name->value), "nodes of PBS are chunks",
                 fmt::format("-l select={}:...", *name->value));
}

}  // namespace lockstep::site
