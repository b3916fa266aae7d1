#include "site/variables.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <set>

#include "core/suggest.hpp"
#include "site/forms.hpp"
#include "site/text.hpp"

namespace lockstep::site {
namespace {

// Seen in tutorials and job scripts.
constexpr Misnomer misnomers[]{
    {"MASTER_ADDRESS", "MASTER_ADDR"},
    {"MASTER_ADR", "MASTER_ADDR"},
    {"NCCL_DISABLE_IB", "NCCL_IB_DISABLE"},
    {"NCCL_DISABLE_P2P", "NCCL_P2P_DISABLE"},
    {"NCCL_DISABLE_SHM", "NCCL_SHM_DISABLE"},
    {"NCCL_IFNAME", "NCCL_SOCKET_IFNAME"},
    {"NCCL_SOCKET_IFACE", "NCCL_SOCKET_IFNAME"},
    {"NCCL_GDR_LEVEL", "NCCL_NET_GDR_LEVEL"},
    {"NCCL_IB_GDR_LEVEL", "NCCL_NET_GDR_LEVEL"},
    {"NCCL_DEBUG_LEVEL", "NCCL_DEBUG"},
    {"CUDA_VISIBLE_DEVICE", "CUDA_VISIBLE_DEVICES"},
    {"OMP_THREADS", "OMP_NUM_THREADS"},
    {"MPICH_GPU_SUPPORT", "MPICH_GPU_SUPPORT_ENABLED"},
    {"FI_PROVIDERS", "FI_PROVIDER"},
    {"UCX_TRANSPORTS", "UCX_TLS"},
};

constexpr std::size_t longest_name = 64;  ///< longer than any that there is, so that no text takes long

constexpr std::array<std::string_view, 2> misspelt_prefixes{"NCLL_", "NCC_"};

// The transports and memory domains of UCX, each with settings of its own.
constexpr std::string_view ucx_prefixes[]{
    "CMA_",    "CUDA_", "DC_",      "EFA_",  "GAUDI_", "GDR_",  "GGA_", "IB_", "KNEM_", "MM_",    "RC_", "RCACHE_",
    "RDMACM_", "ROCM_", "ROCMIPC_", "SELF_", "SRD_",   "SYSV_", "TCP_", "UD_", "UGNI_", "XPMEM_", "ZE_", "POSIX_"};

struct Rule {
  std::string_view name;
  Form form;
  std::string_view words = {};
};

// The names of distances in NCCL's src/graph/topo.cc; the guide has those of up to 2.4, numbers, as well.
constexpr std::string_view distances = "LOC NVL NVB C2C PIX PXB P2C PXN PHB SYS 0 1 2 3 4 5";
constexpr std::string_view truths = "0 1 false true no yes off on";

constexpr Rule rules[]{
    {"NCCL_P2P_LEVEL", Form::exact, distances},
    {"NCCL_NET_GDR_LEVEL", Form::exact, distances},
    {"NCCL_DEBUG", Form::word, "VERSION WARN INFO ABORT TRACE NONE"},
    {"NCCL_DEBUG_SUBSYS", Form::choice,
     "INIT COLL P2P SHM NET GRAPH TUNING ENV ALLOC CALL PROXY NVLS BOOTSTRAP REG PROFILE RAS DESTROY ALL"},
    {"NCCL_ALGO", Form::choice, "Tree Ring CollNet CollNetDirect CollNetChain NVLS NVLSTree PAT"},
    {"NCCL_PROTO", Form::choice, "LL LL128 Simple"},
    {"NCCL_CROSS_NIC", Form::exact, "0 1 2"},
    {"NCCL_LAUNCH_MODE", Form::exact, "PARALLEL GROUP"},
    {"NCCL_SOCKET_FAMILY", Form::exact, "AF_INET AF_INET6"},
    {"FI_MR_CACHE_MONITOR", Form::exact, "userfaultfd memhooks kdreg2 uffd disabled"},
    {"FI_CXI_RX_MATCH_MODE", Form::exact, "hardware software hybrid"},
    {"FI_CXI_OPTIMIZED_MRS", Form::word, truths},
    {"FI_CXI_DISABLE_HOST_REGISTER", Form::word, truths},
    {"FI_CXI_DEFAULT_CQ_SIZE", Form::number},
    {"FI_CXI_DEFAULT_TX_SIZE", Form::number},
    {"FI_LOG_LEVEL", Form::word, "warn trace info debug"},
    {"UCX_LOG_LEVEL", Form::word, "fatal error warn diag info debug trace req data async func poll"},
    {"MPICH_GPU_SUPPORT_ENABLED", Form::exact, "0 1"},
    {"MPICH_OFI_NIC_POLICY", Form::word, "BLOCK ROUND-ROBIN NUMA GPU USER"},
    {"MPICH_SMP_SINGLE_COPY_MODE", Form::word, "XPMEM CMA NONE"},
    // The components of Open MPI 1.6 to 5; with one that is not there MPI does not start.
    {"OMPI_MCA_btl", Form::choice,
     "self sm vader smcuda tcp openib ofi ugni uct usnic portals4 scif sctp udapl mx elan template"},
    {"OMPI_MCA_pml", Form::choice, "ob1 ucx cm yalla v monitoring bfo csum crcpw dr example"},
    {"OMP_NUM_THREADS", Form::counts},
    {"OMP_DYNAMIC", Form::word, "true false"},
    {"OMP_WAIT_POLICY", Form::word, "active passive"},
    {"OMP_PROC_BIND", Form::choice, "true false primary master close spread"},
    {"HDF5_USE_FILE_LOCKING", Form::exact, "TRUE FALSE BEST_EFFORT 1 0"},  // [F-lock]
    {"MASTER_PORT", Form::port},
    {"RANK", Form::number},
    {"LOCAL_RANK", Form::number},
    {"WORLD_SIZE", Form::counts},
};

// NCCL's switches are numbers: strtoll() makes 0 of any word, and so "true" means no.
constexpr Rule nccl_switch{"", Form::number};

const Rule* rule_of(std::string_view name) {
  const auto* const rule = std::ranges::find(rules, name, &Rule::name);
  if (rule != std::end(rules)) return rule;
  const bool is_switch = name.starts_with("NCCL_") && (name.ends_with("_DISABLE") || name.ends_with("_ENABLE"));
  return is_switch && is_known_variable(name) ? &nccl_switch : nullptr;
}

std::string_view without_prefix(const Family& family, std::string_view name) {
  return name.substr(family.prefix.size());
}

bool is_of_ucx_transport(std::string_view name) {
  return std::ranges::any_of(ucx_prefixes, [name](std::string_view prefix) {
    return name.substr(std::string_view{"UCX_"}.size()).starts_with(prefix);
  });
}

/// "DISABLE_IB" and "IB_DISABLE" have the same.
std::vector<std::string_view> sorted_parts(std::string_view name) {
  auto parts = split(name, '_');
  std::ranges::sort(parts);
  return parts;
}

}  // namespace

const Family* family_of(std::string_view name) noexcept {
  for (const Family& family : families())
    if (name.starts_with(family.prefix) && name != family.prefix) return &family;
  return nullptr;
}

bool is_known_variable(std::string_view name) {
  static const auto known = [] {
    const auto names = known_variables();
    return std::set<std::string, std::less<>>{names.begin(), names.end()};
  }();
  return known.contains(name) || (name.starts_with("UCX_") && is_of_ucx_transport(name));
}

std::vector<std::string> known_variables() {
  std::vector<std::string> names;
  for (const Family& family : families())
    for (const std::string_view name : split_words(family.names))
      names.push_back(std::string{family.prefix} + std::string{name});
  for (const Rule& rule : rules)
    if (family_of(rule.name) == nullptr) names.emplace_back(rule.name);
  return names;
}

std::optional<std::string> right_name(std::string_view name) {
  const auto* const misnomer = std::ranges::find(misnomers, name, &Misnomer::wrong);
  if (misnomer != std::end(misnomers)) return std::string{misnomer->right};
  for (const std::string_view prefix : misspelt_prefixes) {
    const std::string meant = "NCCL_" + std::string{name.substr(std::min(prefix.size(), name.size()))};
    if (name.starts_with(prefix) && is_known_variable(meant)) return meant;
  }
  const Family* const family = family_of(name);
  if (family == nullptr || is_known_variable(name)) return std::nullopt;
  const auto parts = sorted_parts(without_prefix(*family, name));
  for (const std::string_view known : split_words(family->names))
    if (sorted_parts(known) == parts) return std::string{family->prefix} + std::string{known};
  return std::nullopt;
}

std::optional<std::string> near_variable(std::string_view name) {
  const Family* const family = family_of(name);
  if (family == nullptr || is_known_variable(name)) return std::nullopt;
  const std::string_view own = without_prefix(*family, name);
  if (own.size() > longest_name) return std::nullopt;
  // A slip is one letter in four at most: IB_SL and IB_TC are two of a kind, not one misspelt. Or a swap: blt, btl.
  std::size_t least = std::min<std::size_t>(2, own.size() / 4) + 1;
  std::string_view nearest;
  for (const std::string_view known : split_words(family->names)) {
    const std::size_t distance = core::edit_distance(own, known);
    const bool is_swap = distance == 1 && own.size() == known.size() &&
                         std::is_permutation(own.begin(), own.end(), known.begin(), known.end());
    if (distance >= least && !is_swap) continue;
    least = distance;
    nearest = known;
  }
  if (nearest.empty()) return std::nullopt;
  return std::string{family->prefix} + std::string{nearest};
}

std::optional<std::string> expected_instead(std::string_view name, std::string_view value) {
  const Rule* const rule = rule_of(name);
  const std::string expected =
      rule == nullptr || value.empty() ? "" : expected_of(rule->form, rule->words, trim(value));
  return expected.empty() ? std::nullopt : std::optional{expected};
}

}  // namespace lockstep::site
