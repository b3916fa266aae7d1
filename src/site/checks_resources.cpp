#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "site/checks.hpp"
#include "site/text.hpp"

namespace lockstep::site {
namespace {

std::string meant_resource(std::string_view name, bool is_in_chunk, const Look& look) {
  if (!look.may_search()) return "";
  std::vector<std::string> names;
  for (const Option& option : options_of(OptionSet::resources))
    if (option.of == Of::host || (option.of == Of::chunk) == is_in_chunk) names.push_back(option.name);
  return did_you_mean(name, names);
}

void check_resource(const Resource& resource, bool is_in_chunk, bool has_chunks, const Look& look) {
  const std::string &name = resource.name, &value = resource.value;
  const Option* const option = find_option(OptionSet::resources, name);
  if (option == nullptr) {  // sites have their own
    if (const std::string meant = meant_resource(name, is_in_chunk, look); !meant.empty())
      look.warning(resource.line, fmt::format("'{}' is not a known resource{}", name, is_in_chunk ? " of a chunk" : ""),
                   "", meant);
    return;
  }
  if (is_in_chunk && option->of == Of::job)
    return look.error(resource.line, fmt::format("select contains {}", name),
                      "it is a resource of the whole job, and the job is refused",
                      fmt::format("write -l {}={} by itself", name, value));
  if (!is_in_chunk && (option->of == Of::chunk || (option->of == Of::host && has_chunks)))
    return look.error(resource.line, fmt::format("-l {} asks for the whole job", name),
                      option->of == Of::chunk ? "it is a resource of a chunk, and the job is refused"
                                              : "chunks say what nodes have: beside select the job is refused",
                      fmt::format("-l select=...:{}={}", name, value));
  if (const std::string expected = expected_of(option->form, option->words, value); !expected.empty())
    look.error(resource.line, fmt::format("{} has the value '{}'", name, value), refused, expected);
}

void check_chunk(std::string_view chunk, int line, const Look& look) {
  const auto parts = read_resources(chunk, ':', line);
  std::set<std::string_view> names;
  for (const Resource& part : parts) {
    const bool is_first = &part == &parts.front();
    if (is_first && part.is_alone && whole_number(part.name).value_or(0) > 0) continue;
    if (part.name.empty() || part.value.empty())
      return look.error(line, fmt::format("select has the part '{}'", part.name), refused,
                        "[N:]NAME=VALUE[:NAME=VALUE...], with + between chunks");
    if (!names.insert(part.name).second)
      return look.error(line, fmt::format("{} twice in one chunk of select", part.name), refused,
                        "remove one of the two, or put + between two chunks");
    check_resource(part, true, true, look);
  }
}

}  // namespace

void check_resources(const Look& look) {
  const auto resources = pbs_resources(look.script);
  const Resource* const select = find_last_by(resources, "select", &Resource::name);
  const Resource* const place = find_last_by(resources, "place", &Resource::name);
  const Resource* const nodes = find_last_by(resources, "nodes", &Resource::name);
  for (const Resource& resource : resources) {
    check_resource(resource, false, select != nullptr || place != nullptr, look);
    const Resource* const last = find_last_by(resources, resource.name, &Resource::name);
    if (last->value != resource.value && find_option(OptionSet::resources, resource.name) != nullptr)
      look.warning(last->line, fmt::format("-l {} again, after line {}", last->name, resource.line), "", "remove one");
    if (resource.name != "select") continue;
    for (const std::string_view chunk : split(resource.value, '+')) check_chunk(chunk, resource.line, look);
  }
  if (place != nullptr && select == nullptr && nodes == nullptr)
    look.error(place->line, "-l place without -l select", refused, "-l select=N:ncpus=...");
  if (nodes != nullptr && (select != nullptr || place != nullptr))
    look.error(nodes->line, "-l nodes together with -l select or -l place",
               "nodes= is the older form of both, and the job is refused", "-l select=N:ncpus=...:mpiprocs=...");
  if (const Flag* const name = directive(look.script, "N"); name != nullptr && whole_number(name->text()))
    look.warning(name->line, fmt::format("-N {} names the job", name->text()), "PBS asks for nodes as chunks",
                 fmt::format("-l select={}:...", name->text()));
}

}  // namespace lockstep::site
