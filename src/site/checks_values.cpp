#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/ascii.hpp"
#include "site/checks.hpp"
#include "site/text.hpp"

namespace lockstep::site {
namespace {

Finding malformed(const Flag& flag, std::string_view expected) {
  return {.severity = Severity::error,
          .what = fmt::format("{} has the value '{}'", flag.typed, flag.value.value_or("")),
          .why = "the job is refused",
          .fix = std::string{expected},
          .line = flag.line};
}

bool is_one_of(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

/// "2", of nodes also "2-4".
bool is_count(std::string_view text) {
  const auto number = whole_number(text);
  return number && *number > 0;
}

bool is_node_count(std::string_view text) {
  return std::ranges::all_of(split(text, '-'), is_count) && split(text, '-').size() <= 2;
}

/// "4", "a100:4", of several between commas.
bool is_gpu_count(std::string_view text) {
  return std::ranges::all_of(split(text, ','), [](std::string_view part) {
    return whole_number(part.substr(part.rfind(':') == part.npos ? 0 : part.rfind(':') + 1)).value_or(-1) >= 0;
  });
}

/// "USR1", "B:SIGUSR1@300", "10@60".
bool is_signal(std::string_view text) {
  constexpr std::array<std::string_view, 15> names{"HUP",  "INT", "QUIT", "ABRT", "KILL", "ALRM", "TERM", "USR1",
                                                   "USR2", "URG", "CONT", "STOP", "TSTP", "XCPU", "PIPE"};
  if (text.starts_with("B:") || text.starts_with("R:")) text.remove_prefix(2);
  const std::size_t at = text.find('@');
  if (at != text.npos && !whole_number(text.substr(at + 1))) return false;
  text = text.substr(0, at);
  if (is_count(text)) return true;
  if (text.starts_with("SIG")) text.remove_prefix(3);
  return std::ranges::any_of(names, [text](std::string_view name) { return core::equal_ignoring_case(name, text); });
}

/// "0-15", "1,3,5-7", "0-15:4%2".
bool is_array(std::string_view text) {
  const std::size_t percent = text.find('%');
  if (percent != text.npos && !is_count(text.substr(percent + 1))) return false;
  return std::ranges::all_of(split(text.substr(0, percent), ','), [](std::string_view part) {
    const std::size_t colon = part.find(':');
    if (colon != part.npos && !is_count(part.substr(colon + 1))) return false;
    const auto ends = split(part.substr(0, colon), '-');
    return ends.size() <= 2 &&
           std::ranges::all_of(ends, [](std::string_view end) { return whole_number(end).has_value(); });
  });
}

bool is_unlimited(std::string_view text) {
  return core::equal_ignoring_case(text, "UNLIMITED") || core::equal_ignoring_case(text, "INFINITE");
}

/// What a value that cannot be should have been; empty if it can be.
std::string_view slurm_expectation(const Flag& flag) {
  constexpr std::array<std::string_view, 7> counts{"ntasks",       "ntasks-per-node", "tasks-per-node", "cpus-per-task",
                                                   "cpus-per-gpu", "ntasks-per-gpu",  "mincpus"};
  constexpr std::array<std::string_view, 3> gpu_counts{"gpus", "gpus-per-node", "gpus-per-task"};
  constexpr std::array<std::string_view, 4> sizes{"mem", "mem-per-cpu", "mem-per-gpu", "tmp"};
  const std::string_view value = *flag.value;
  if (is_one_of(flag.name, counts) && !is_count(value)) return "a whole number from 1";
  if (flag.name == "nodes" && !is_node_count(value)) return "a whole number from 1, or a range such as 2-4";
  if (is_one_of(flag.name, gpu_counts) && !is_gpu_count(value)) return "N or TYPE:N";
  if (is_one_of(flag.name, sizes) && !memory_gb(value, BatchSystem::slurm))
    return "a size such as 208G, or 0 for all of the node";
  if (flag.name == "signal" && !is_signal(value)) return "B:USR1@300: a signal, and the seconds before the end";
  if (flag.name == "array" && !is_array(value)) return "0-15, 1,3,5 or 0-15%4, at most 4 at a time";
  if (flag.name == "time" && !slurm_minutes(value) && !is_unlimited(value)) return "minutes, HH:MM:SS or D-HH:MM:SS";
  return "";
}

bool has_shell_variable(std::string_view value) {
  const std::size_t dollar = value.find('$');
  return dollar != value.npos && dollar + 1 < value.size();
}

void check_slurm_value(const Flag& flag, Findings& findings) {
  if (!flag.value) return;
  const std::string_view value = *flag.value;
  if (value.starts_with('=')) return findings.push_back(malformed(flag, "one = between option and value"));
  if (has_shell_variable(value))
    return findings.push_back({.severity = Severity::error,
                               .what = fmt::format("{} has the value '{}'", flag.typed, value),
                               .why = "directives are read before any shell: variables are not filled in",
                               .fix = "write it out, or give it to sbatch",
                               .line = flag.line});
  if (const std::string_view expected = slurm_expectation(flag); !expected.empty())
    findings.push_back(malformed(flag, expected));
}

void check_gres(const Flag& flag, const Look& look, Findings& findings) {
  for (const Gres& gres : read_gres(flag.value.value_or(""))) {
    const std::vector<std::string> known{"gpu"};
    if (gres.name != "gpu" && near_name(gres.name, known)) findings.push_back(malformed(flag, "gpu:N or gpu:TYPE:N"));
    if (gres.name != "gpu") continue;
    if (!gres.count) findings.push_back(malformed(flag, "gpu:N or gpu:TYPE:N"));
    if (gres.type.empty()) continue;
    const auto& gone = look.site.gone_gpus;
    const std::string near = near_name(gres.type, gone).value_or("");
    if (near == gres.type) {
      findings.push_back({.severity = Severity::error,
                          .what = fmt::format("{} has no GPUs of type '{}' any more", look.site.title, gres.type),
                          .why = "the job would wait for ever, or is refused",
                          .fix = "a partition and a type of today",
                          .line = flag.line});
      continue;
    }
    // In tutorials, also of sites whose list does not have it.
    if (gres.type == "geforece" || !near.empty())
      findings.push_back({.severity = Severity::error,
                          .what = fmt::format("'{}' is no type of GPU", gres.type),
                          .why = "the job is refused",
                          .fix = near.empty() ? "geforce was meant" : fmt::format("{} was meant; those are gone", near),
                          .line = flag.line});
  }
}

void check_slurm(const Look& look, Findings& findings) {
  for (const Flag& flag : look.script.directives) {
    check_slurm_value(flag, findings);
    if (flag.name == "gres") check_gres(flag, look, findings);
  }
}

void check_select(const Resource& select, Findings& findings) {
  const std::vector<std::string> names{"ncpus", "mpiprocs", "ngpus", "mem",  "ompthreads", "gpu_type",
                                       "mps",   "host",     "vnode", "arch", "cpu_type",   "nodetype"};
  for (const std::string_view chunk : split(select.value, '+')) {
    for (const std::string_view part : split(chunk, ':')) {
      const std::size_t equals = part.find('=');
      const std::string name{part.substr(0, equals)};
      if (equals == part.npos || std::ranges::find(names, name) != names.end()) continue;
      if (const auto near = near_name(name, names))
        findings.push_back({.severity = Severity::warning,
                            .what = fmt::format("'{}' is no resource of a chunk that is known here", name),
                            .why = "",
                            .fix = fmt::format("did you mean {}?", *near),
                            .line = select.line});
    }
  }
}

void check_resources(const Look& look, Findings& findings) {
  for (const Resource& resource : pbs_resources(look.script)) {
    if (resource.name == "gpu_type")  // [N-pbs]
      findings.push_back({.severity = Severity::error,
                          .what = "-l gpu_type asks for a GPU of the whole job",
                          .why = "it is a resource of a chunk, and the job is refused",
                          .fix = fmt::format("-l select=...:gpu_type={}", resource.value),
                          .line = resource.line});
    if (resource.name == "walltime" && !pbs_minutes(resource.value))
      findings.push_back({.severity = Severity::error,
                          .what = fmt::format("walltime has the value '{}'", resource.value),
                          .why = "the job is refused",
                          .fix = "HH:MM:SS",
                          .line = resource.line});
    if (resource.name == "select") check_select(resource, findings);
  }
}

void check_pbs(const Look& look, Findings& findings) {
  check_resources(look, findings);
  if (const Flag* const all = directive(look.script, "V"))
    findings.push_back({.severity = Severity::warning,
                        .what = "-V takes the whole environment of the shell that submits",
                        .why = "modules and variables of that shell then mix with those of the script",
                        .fix = "load modules in the script; -v NAME for single variables",
                        .line = all->line});
  if (const Flag* const name = directive(look.script, "N");
      name != nullptr && name->value && whole_number(*name->value))
    findings.push_back({.severity = Severity::warning,
                        .what = fmt::format("-N {} names the job", *name->value),
                        .why = "nodes of PBS are chunks",
                        .fix = fmt::format("-l select={}:...", *name->value),
                        .line = name->line});
}

}  // namespace

void check_values(const Look& look, Findings& findings) {
  look.script.system == BatchSystem::pbs ? check_pbs(look, findings) : check_slurm(look, findings);
}

}  // namespace lockstep::site
