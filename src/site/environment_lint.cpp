#include "site/environment_lint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "core/ascii.hpp"
#include "site/forms.hpp"
#include "site/text.hpp"
#include "site/variables.hpp"

namespace lockstep::site {
namespace {

/// The variables by name; of several of one name the last.
using Settings = std::map<std::string_view, const Variable*>;

std::string_view value_of(const Settings& settings, std::string_view name) {
  const auto found = settings.find(name);
  return found == settings.end() ? std::string_view{} : trim(found->second->value);
}

enum class Is { set, on, among, other_than, having, only, slingshot };
struct Condition {
  std::string_view name{};  ///< empty: always so
  Is is = Is::set;
  std::string_view words{};
};

bool is_among(std::string_view words, std::string_view value) { return expected_of(Form::word, words, value).empty(); }

bool is_on_slingshot(const Settings& settings, Fabric fabric) {
  const auto of_cxi = settings.lower_bound("FI_CXI_");
  return fabric == Fabric::slingshot || core::equal_ignoring_case(value_of(settings, "FI_PROVIDER"), "cxi") ||
         value_of(settings, "NCCL_NET") == "AWS Libfabric" ||
         (of_cxi != settings.end() && of_cxi->first.starts_with("FI_CXI_"));
}

bool holds(const Condition& condition, const Settings& settings, Fabric fabric) {
  if (condition.is == Is::slingshot) return is_on_slingshot(settings, fabric);
  if (condition.name.empty()) return true;
  if (!settings.contains(condition.name)) return false;
  const std::string_view value = value_of(settings, condition.name);
  std::set<std::string_view> parts;
  for (const std::string_view part : split(value, ',')) parts.insert(trim(part));
  const auto is_known = [&](std::string_view part) { return is_one_of(part, condition.words); };
  switch (condition.is) {
    case Is::on: return is_among("1 true yes on y", value);
    case Is::among: return is_among(condition.words, value);
    case Is::other_than: return !value.empty() && value.find('$') == value.npos && !is_among(condition.words, value);
    case Is::having: return !value.starts_with('^') && parts.contains(condition.words);
    case Is::only: return std::ranges::all_of(parts, is_known);
    default: return true;
  }
}

/// Settings that are right each by itself and wrong together.
struct Contradiction {
  Severity severity;
  std::array<Condition, 3> all;  ///< the finding is about the first of them
  std::string_view what;         ///< {0} and {1}: the values of the first two
  std::string_view why;
  std::string_view fix = {};
  std::array<Condition, 2> unless{};  ///< both
};
constexpr std::string_view one_of_two = "leave one of the two out";
constexpr Contradiction contradictions[]{
    {Severity::warning,
     {{{"NCCL_IB_HCA"}, {"NCCL_IB_DISABLE", Is::on}}},
     "NCCL_IB_HCA has no effect beside NCCL_IB_DISABLE=1",
     "",
     one_of_two},
    // ncclGetLevel() looks at the switch first.
    {Severity::warning,
     {{{"NCCL_P2P_LEVEL"}, {"NCCL_P2P_DISABLE", Is::on}}},
     "NCCL_P2P_LEVEL has no effect beside NCCL_P2P_DISABLE=1",
     "",
     one_of_two},
    {Severity::warning,
     {{{"NCCL_SHM_DISABLE", Is::on}, {"NCCL_P2P_DISABLE", Is::on}}},
     "NCCL_P2P_DISABLE=1 together with NCCL_SHM_DISABLE=1",
     "GPUs of one node then talk to each other over the network",
     "leave both out"},
    {Severity::error,
     {{{"NCCL_NET", Is::other_than, "IB Socket"}, {"NCCL_NET_PLUGIN", Is::among, "none"}}},
     "NCCL_NET={} together with NCCL_NET_PLUGIN=none",
     "that network is of a plugin, and NCCL ends if the network it is told to use is not there",
     "leave NCCL_NET_PLUGIN out"},
    {Severity::error,
     {{{"NCCL_ALGO", Is::among, "NVLS NVLSTree"}, {"NCCL_NVLS_ENABLE", Is::among, "0"}}},
     "NCCL_ALGO={} together with NCCL_NVLS_ENABLE=0",
     "no algorithm is left",
     one_of_two},
    // [I-labs]: the Horovod pages set it, and MPI loses its network.
    {Severity::warning,
     {{{"UCX_TLS", Is::having, "tcp"},
       {"UCX_TLS", Is::only, "tcp self sm shm mm posix sysv cma knem xpmem cuda cuda_copy cuda_ipc gdr_copy"}}},
     "UCX_TLS={} leaves no RDMA",
     "between nodes MPI then uses TCP, at a fraction of the network's rate",
     "leave UCX_TLS out"},
    {Severity::warning,
     {{{"OMPI_MCA_btl", Is::having, "openib"}, {"OMPI_MCA_pml", Is::among, "ucx"}}},
     "OMPI_MCA_btl names openib beside OMPI_MCA_pml=ucx",
     "pml ucx sends messages without a btl; openib is deprecated in Open MPI 4 and gone in 5",
     "OMPI_MCA_btl=^openib, or leave it out"},
    {Severity::warning,
     {{{"UCX_TLS"}, {"OMPI_MCA_pml", Is::among, "ob1 cm"}}},
     "UCX_TLS has no effect beside OMPI_MCA_pml={1}",
     "",
     one_of_two},
    // [N-benkirk, H-shs].
    {Severity::warning,
     {{{"FI_MR_CACHE_MONITOR", Is::among, "memhooks"}, {"", Is::slingshot}}},
     "FI_MR_CACHE_MONITOR=memhooks on Slingshot",
     "NCCL is known to deadlock with it",
     "FI_MR_CACHE_MONITOR=userfaultfd"},
    // [N-credit].
    {Severity::warning,
     {{{"MPICH_GPU_SUPPORT_ENABLED", Is::among, "0"}}},
     "MPICH_GPU_SUPPORT_ENABLED=0 without FI_CXI_DISABLE_HOST_REGISTER=1 and MPICH_SMP_SINGLE_COPY_MODE=NONE",
     "where a process uses GPUs, libfabric may crash when only the first is set",
     "set all three, or none",
     {{{"FI_CXI_DISABLE_HOST_REGISTER", Is::on}, {"MPICH_SMP_SINGLE_COPY_MODE", Is::among, "NONE"}}}},
    // [H-shs].
    {Severity::note,
     {{{"FI_CXI_RDZV_PROTO", Is::among, "alt_read"}}},
     "FI_CXI_RDZV_PROTO=alt_read",
     "it needs srun --network=disable_rdzv_get, with PALS mpiexec --disable_rdzv_get",
     ""},
};

void find_contradictions(const Settings& settings, Fabric fabric, std::vector<Finding>& findings) {
  const auto is_so = [&](const Condition& condition) { return holds(condition, settings, fabric); };
  for (const Contradiction& one : contradictions) {
    const bool is_excused = !one.unless[0].name.empty() && std::ranges::all_of(one.unless, is_so);
    if (is_excused || !std::ranges::all_of(one.all, is_so)) continue;
    const std::string what =
        fmt::format(fmt::runtime(one.what), value_of(settings, one.all[0].name), value_of(settings, one.all[1].name));
    findings.push_back(
        {one.severity, what, std::string{one.why}, std::string{one.fix}, settings.at(one.all[0].name)->line});
  }
  const auto rank = whole_number(value_of(settings, "RANK")), size = whole_number(value_of(settings, "WORLD_SIZE"));
  if (rank && size && *rank >= *size)
    findings.push_back({Severity::error, fmt::format("RANK={} with WORLD_SIZE={}", *rank, *size), "ranks count from 0",
                        fmt::format("0 to {}", *size - 1), settings.at("RANK")->line});
}

/// Of a name that nothing reads; nothing if it is known, of no family, or may well be one that is not in the table.
/// What it may be meant for is looked for among all names, so only where `searches`.
std::optional<Finding> judge_name(const Variable& variable, bool searches) {
  if (const auto right = searches ? right_name(variable.name) : std::nullopt)
    return Finding{Severity::error, fmt::format("nothing reads {}", variable.name),
                   "it has no effect, and nothing complains", *right, variable.line};
  const Family* const family = family_of(variable.name);
  if (family == nullptr || is_known_variable(variable.name)) return std::nullopt;
  const std::string what = fmt::format("{} is no variable of {} that is known here", variable.name, family->reader);
  if (const auto near = searches ? near_variable(variable.name) : std::nullopt)
    return Finding{Severity::warning, what, "a misspelt variable has no effect, and nothing complains",
                   fmt::format("did you mean {}?", *near), variable.line};
  if (family->is_open) return std::nullopt;
  return Finding{Severity::note, what, "", "", variable.line};
}

std::optional<Finding> judge_value(const Variable& variable) {
  if (variable.value.find_first_of("$`") != variable.value.npos) return std::nullopt;
  const auto expected = expected_instead(variable.name, variable.value);
  if (!expected) return std::nullopt;
  const Family* const family = family_of(variable.name);
  const bool stops_mpi = variable.name.starts_with("OMPI_MCA_");
  return Finding{Severity::error, fmt::format("{}={}: no such value", variable.name, variable.value),
                 fmt::format("{} {}", family ? family->reader : "the program",
                             stops_mpi ? "does not start" : "ignores it or takes it for another"),
                 *expected, variable.line};
}

}  // namespace

std::vector<Finding> lint_environment(std::span<const Variable> variables, Fabric fabric) {
  std::vector<Finding> findings;
  constexpr int most_unknown = 200;  // more than any has, so that no text takes long
  int n_unknown = 0;
  std::set<std::string_view> judged;
  Settings settings;
  for (const Variable& variable : variables) {
    settings[variable.name] = &variable;
    if (judged.insert(variable.name).second) {
      const bool is_unknown = family_of(variable.name) != nullptr && !is_known_variable(variable.name);
      if (is_unknown) ++n_unknown;
      if (auto finding = judge_name(variable, n_unknown <= most_unknown)) findings.push_back(std::move(*finding));
    }
    if (auto finding = judge_value(variable)) findings.push_back(std::move(*finding));
  }
  find_contradictions(settings, fabric, findings);
  return findings;
}

}  // namespace lockstep::site
