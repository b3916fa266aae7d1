#include "site/environment_lint.hpp"

#include <fmt/format.h>

#include <algorithm>
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

bool is_among(std::string_view words, std::string_view value) { return expected_of(Form::word, words, value).empty(); }

bool is_on_slingshot(const Settings& settings, Fabric fabric) {
  const auto of_cxi = settings.lower_bound("FI_CXI_");
  return fabric == Fabric::slingshot || core::equal_ignoring_case(value_of(settings, "FI_PROVIDER"), "cxi") ||
         value_of(settings, "NCCL_NET") == "AWS Libfabric" ||
         (of_cxi != settings.end() && of_cxi->first.starts_with("FI_CXI_"));
}

/// A condition is: NAME (it is set), NAME on, NAME among WORDS (in any case), NAME outside WORDS, NAME having WORD (in
/// its list), NAME within WORDS (all of its list), or slingshot.
bool holds(std::string_view condition, const Settings& settings, Fabric fabric) {
  if (condition == "slingshot") return is_on_slingshot(settings, fabric);
  const std::string_view name = condition.substr(0, condition.find(' '));
  if (!settings.contains(name)) return false;
  const std::string_view rest = trim(condition.substr(name.size())), verb = rest.substr(0, rest.find(' '));
  const std::string_view words = trim(rest.substr(verb.size())), value = value_of(settings, name);
  const auto parts = split(value, ',');
  const auto is_named = [words](std::string_view part) { return is_one_of(trim(part), words); };
  if (verb == "on") return is_among("1 true yes on y", value);
  if (verb == "among") return is_among(words, value);
  if (verb == "outside") return !value.empty() && value.find('$') == value.npos && !is_among(words, value);
  if (verb == "having") return !value.starts_with('^') && std::ranges::any_of(parts, is_named);
  return verb != "within" || std::ranges::all_of(parts, is_named);
}

/// Settings that are right each by itself and wrong together.
struct Contradiction {
  Severity severity;
  std::string_view all;   ///< conditions, with ; between; the finding is about the variable of the first
  std::string_view what;  ///< {0} and {1}: the values of the first and the last
  std::string_view why;
  std::string_view fix = {};
  std::string_view unless = {};  ///< conditions that all hold
};
constexpr std::string_view one_of_two = "remove one of the two";
constexpr Contradiction contradictions[]{
    {Severity::warning, "NCCL_IB_HCA;NCCL_IB_DISABLE on", "NCCL_IB_HCA has no effect beside NCCL_IB_DISABLE=1", "",
     one_of_two},
    // ncclGetLevel() looks at the switch first.
    {Severity::warning, "NCCL_P2P_LEVEL;NCCL_P2P_DISABLE on", "NCCL_P2P_LEVEL has no effect beside NCCL_P2P_DISABLE=1",
     "", one_of_two},
    {Severity::warning, "NCCL_SHM_DISABLE on;NCCL_P2P_DISABLE on",
     "NCCL_P2P_DISABLE=1 together with NCCL_SHM_DISABLE=1", "GPUs of one node then use the network between nodes",
     "remove both"},
    {Severity::error, "NCCL_NET outside IB Socket;NCCL_NET_PLUGIN among none",
     "NCCL_NET={} together with NCCL_NET_PLUGIN=none",
     "a plugin provides that network, and NCCL stops if NCCL_NET names a network that it does not find",
     "remove NCCL_NET_PLUGIN"},
    {Severity::error, "NCCL_ALGO among NVLS NVLSTree;NCCL_NVLS_ENABLE among 0",
     "NCCL_ALGO={} together with NCCL_NVLS_ENABLE=0", "no algorithm is left", one_of_two},
    // [I-labs]: the Horovod pages set it, and MPI loses its network.
    {Severity::warning,
     "UCX_TLS having tcp;UCX_TLS within tcp self sm shm mm posix sysv cma knem xpmem cuda cuda_copy cuda_ipc gdr_copy",
     "UCX_TLS={} leaves no RDMA", "MPI then uses TCP between nodes, at a fraction of the network's bandwidth",
     "remove UCX_TLS"},
    {Severity::warning, "OMPI_MCA_btl having openib;OMPI_MCA_pml among ucx",
     "OMPI_MCA_btl names openib beside OMPI_MCA_pml=ucx",
     "pml ucx sends messages without a btl; Open MPI 4 deprecates openib and Open MPI 5 does not have it",
     "OMPI_MCA_btl=^openib, or remove it"},
    {Severity::warning, "UCX_TLS;OMPI_MCA_pml among ob1 cm", "UCX_TLS has no effect beside OMPI_MCA_pml={1}", "",
     one_of_two},
    // [N-benkirk, H-shs].
    {Severity::warning, "FI_MR_CACHE_MONITOR among memhooks;slingshot", "FI_MR_CACHE_MONITOR=memhooks on Slingshot",
     "NCCL is known to deadlock with it", "FI_MR_CACHE_MONITOR=userfaultfd"},
    // [N-credit].
    {Severity::warning, "MPICH_GPU_SUPPORT_ENABLED among 0",
     "MPICH_GPU_SUPPORT_ENABLED=0 without FI_CXI_DISABLE_HOST_REGISTER=1 and MPICH_SMP_SINGLE_COPY_MODE=NONE",
     "libfabric may crash in a process that uses GPUs when only the first is set", "set all three, or none",
     "FI_CXI_DISABLE_HOST_REGISTER on;MPICH_SMP_SINGLE_COPY_MODE among NONE"},
    // [H-shs].
    {Severity::note, "FI_CXI_RDZV_PROTO among alt_read", "FI_CXI_RDZV_PROTO=alt_read",
     "it needs srun --network=disable_rdzv_get, or with PALS mpiexec --disable_rdzv_get"},
};

void find_contradictions(const Settings& settings, Fabric fabric, std::vector<Finding>& findings) {
  const auto all_hold = [&](std::string_view conditions) {
    return std::ranges::all_of(split(conditions, ';'),
                               [&](std::string_view one) { return holds(one, settings, fabric); });
  };
  for (const Contradiction& one : contradictions) {
    if (!all_hold(one.all) || (!one.unless.empty() && all_hold(one.unless))) continue;
    std::vector<std::string_view> names;
    for (const std::string_view condition : split(one.all, ';'))
      names.push_back(condition.substr(0, condition.find(' ')));
    const std::string what =
        fmt::format(fmt::runtime(one.what), value_of(settings, names.front()), value_of(settings, names.back()));
    findings.push_back({one.severity, what, std::string{one.why}, std::string{one.fix}, settings.at(names[0])->line});
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
  const std::string what = fmt::format("{} is not among the variables of {} known here", variable.name, family->reader);
  if (const auto near = searches ? near_variable(variable.name) : std::nullopt)
    return Finding{Severity::warning, what, "a misspelt variable has no effect, and nothing complains",
                   fmt::format("did you mean {}?", *near), variable.line};
  return family->is_open ? std::nullopt : std::optional{Finding{Severity::note, what, "", "", variable.line}};
}

std::optional<Finding> judge_value(const Variable& variable) {
  if (variable.value.find_first_of("$`") != variable.value.npos) return std::nullopt;
  const std::string expected = expected_instead(variable.name, variable.value);
  if (expected.empty()) return std::nullopt;
  const Family* const family = family_of(variable.name);
  const bool stops_mpi = variable.name.starts_with("OMPI_MCA_");
  return Finding{Severity::error, fmt::format("{}={}: no such value", variable.name, variable.value),
                 fmt::format("{} {}", family ? family->reader : "the program",
                             stops_mpi ? "does not start" : "ignores it or takes it for another value"),
                 expected, variable.line};
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
