#include "site/contradictions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "core/ascii.hpp"
#include "site/text.hpp"

namespace lockstep::site {
namespace {

using Found = std::optional<Finding>;

Finding about(const Variable& variable, Severity severity, std::string what, std::string why, std::string fix) {
  return {.severity = severity,
          .what = std::move(what),
          .why = std::move(why),
          .fix = std::move(fix),
          .line = variable.line};
}

/// `variable` has no effect because of `reason`.
Finding idle(const Variable& variable, std::string_view reason, std::string fix = "") {
  return about(variable, Severity::warning, fmt::format("{} has no effect beside {}", variable.name, reason), "",
               fix.empty() ? fmt::format("leave one of the two out") : std::move(fix));
}

bool is_slingshot(const Settings& settings, Fabric fabric) {
  return fabric == Fabric::slingshot || core::equal_ignoring_case(settings.value("FI_PROVIDER"), "cxi") ||
         settings.value("NCCL_NET") == "AWS Libfabric" || settings.find_beginning("FI_CXI_") != nullptr;
}

Found hca_of_nothing(const Settings& settings, Fabric) {
  const Variable* const hca = settings.find("NCCL_IB_HCA");
  if (hca == nullptr || !settings.is_on("NCCL_IB_DISABLE")) return std::nullopt;
  return idle(*hca, "NCCL_IB_DISABLE=1");
}

// ncclGetLevel() looks at the switch first.
Found level_of_nothing(const Settings& settings, Fabric) {
  const Variable* const level = settings.find("NCCL_P2P_LEVEL");
  if (level == nullptr || !settings.is_on("NCCL_P2P_DISABLE")) return std::nullopt;
  return idle(*level, "NCCL_P2P_DISABLE=1");
}

Found nothing_within_node(const Settings& settings, Fabric) {
  if (!settings.is_on("NCCL_P2P_DISABLE") || !settings.is_on("NCCL_SHM_DISABLE")) return std::nullopt;
  return about(*settings.find("NCCL_SHM_DISABLE"), Severity::warning,
               "NCCL_P2P_DISABLE=1 together with NCCL_SHM_DISABLE=1",
               "GPUs of one node then talk to each other over the network", "leave both out");
}

Found net_without_plugin(const Settings& settings, Fabric) {
  const Variable* const net = settings.find("NCCL_NET");
  if (net == nullptr || !core::equal_ignoring_case(settings.value("NCCL_NET_PLUGIN"), "none")) return std::nullopt;
  const bool is_built_in =
      core::equal_ignoring_case(net->value, "IB") || core::equal_ignoring_case(net->value, "Socket");
  if (is_built_in || net->value.empty() || net->value.find('$') != net->value.npos) return std::nullopt;
  return about(*net, Severity::error, fmt::format("NCCL_NET={} together with NCCL_NET_PLUGIN=none", net->value),
               "that network is of a plugin, and NCCL ends if the network it is told to use is not there",
               "leave NCCL_NET_PLUGIN out");
}

Found nvls_of_nothing(const Settings& settings, Fabric) {
  const Variable* const algorithm = settings.find("NCCL_ALGO");
  if (algorithm == nullptr || settings.value("NCCL_NVLS_ENABLE") != "0") return std::nullopt;
  const bool is_nvls_alone =
      core::equal_ignoring_case(algorithm->value, "NVLS") || core::equal_ignoring_case(algorithm->value, "NVLSTree");
  if (!is_nvls_alone) return std::nullopt;
  return about(*algorithm, Severity::error,
               fmt::format("NCCL_ALGO={} together with NCCL_NVLS_ENABLE=0", algorithm->value), "no algorithm is left",
               "leave one of the two out");
}

// [I-labs]: the Horovod pages set it, and MPI loses its network.
Found tcp_alone(const Settings& settings, Fabric) {
  const Variable* const transports = settings.find("UCX_TLS");
  if (transports == nullptr || transports->value.starts_with('^')) return std::nullopt;
  const auto words = split(transports->value, ',');
  const auto slow_or_local =
      split_words("tcp self sm shm mm posix sysv cma knem xpmem cuda cuda_copy cuda_ipc gdr_copy");
  const auto is_slow_or_local = [&](std::string_view word) {
    return std::ranges::find(slow_or_local, trim(word)) != slow_or_local.end();
  };
  const bool has_tcp = std::ranges::any_of(words, [](std::string_view word) { return trim(word) == "tcp"; });
  if (!has_tcp || !std::ranges::all_of(words, is_slow_or_local)) return std::nullopt;
  return about(*transports, Severity::warning, fmt::format("UCX_TLS={} leaves no RDMA", transports->value),
               "between nodes MPI then uses TCP, at a fraction of the network's rate", "leave UCX_TLS out");
}

Found openib_beside_ucx(const Settings& settings, Fabric) {
  const Variable* const btl = settings.find("OMPI_MCA_btl");
  if (btl == nullptr || settings.value("OMPI_MCA_pml") != "ucx" || btl->value.starts_with('^')) return std::nullopt;
  const auto words = split(btl->value, ',');
  if (std::ranges::find(words, "openib") == words.end()) return std::nullopt;
  return about(*btl, Severity::warning, "OMPI_MCA_btl names openib beside OMPI_MCA_pml=ucx",
               "pml ucx sends messages without a btl; openib is deprecated in Open MPI 4 and gone in 5",
               "OMPI_MCA_btl=^openib, or leave it out");
}

Found ucx_unused(const Settings& settings, Fabric) {
  const Variable* const transports = settings.find("UCX_TLS");
  const std::string_view pml = settings.value("OMPI_MCA_pml");
  if (transports == nullptr || (pml != "ob1" && pml != "cm")) return std::nullopt;
  return idle(*transports, fmt::format("OMPI_MCA_pml={}", pml));
}

// [N-benkirk, H-shs].
Found memhooks_on_slingshot(const Settings& settings, Fabric fabric) {
  const Variable* const monitor = settings.find("FI_MR_CACHE_MONITOR");
  if (monitor == nullptr || monitor->value != "memhooks" || !is_slingshot(settings, fabric)) return std::nullopt;
  return about(*monitor, Severity::warning, "FI_MR_CACHE_MONITOR=memhooks on Slingshot",
               "NCCL is known to deadlock with it", "FI_MR_CACHE_MONITOR=userfaultfd");
}

// [N-credit].
Found host_registered_alone(const Settings& settings, Fabric) {
  const Variable* const support = settings.find("MPICH_GPU_SUPPORT_ENABLED");
  if (support == nullptr || support->value != "0") return std::nullopt;
  const bool is_copied = core::equal_ignoring_case(settings.value("MPICH_SMP_SINGLE_COPY_MODE"), "NONE");
  if (settings.is_on("FI_CXI_DISABLE_HOST_REGISTER") && is_copied) return std::nullopt;
  return about(*support, Severity::warning,
               "MPICH_GPU_SUPPORT_ENABLED=0 without FI_CXI_DISABLE_HOST_REGISTER=1 and MPICH_SMP_SINGLE_COPY_MODE=NONE",
               "where a process uses GPUs, libfabric may crash when only the first is set", "set all three, or none");
}

// [H-shs].
Found read_without_network_option(const Settings& settings, Fabric) {
  const Variable* const protocol = settings.find("FI_CXI_RDZV_PROTO");
  if (protocol == nullptr || protocol->value != "alt_read") return std::nullopt;
  return about(*protocol, Severity::note, "FI_CXI_RDZV_PROTO=alt_read",
               "it needs srun --network=disable_rdzv_get, with PALS mpiexec --disable_rdzv_get", "");
}

Found rank_beyond_world(const Settings& settings, Fabric) {
  const Variable* const rank = settings.find("RANK");
  const auto size = whole_number(settings.value("WORLD_SIZE"));
  if (rank == nullptr || !size) return std::nullopt;
  const auto number = whole_number(rank->value);
  if (!number || *number < *size) return std::nullopt;
  return about(*rank, Severity::error, fmt::format("RANK={} with WORLD_SIZE={}", *number, *size), "ranks count from 0",
               fmt::format("0 to {}", *size - 1));
}

constexpr std::array rules_together{hca_of_nothing,
                                    level_of_nothing,
                                    nothing_within_node,
                                    net_without_plugin,
                                    nvls_of_nothing,
                                    tcp_alone,
                                    openib_beside_ucx,
                                    ucx_unused,
                                    memhooks_on_slingshot,
                                    host_registered_alone,
                                    read_without_network_option,
                                    rank_beyond_world};

}  // namespace

Settings::Settings(std::span<const Variable> variables) {
  for (const Variable& variable : variables) by_name_[variable.name] = &variable;
}

const Variable* Settings::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

std::string_view Settings::value(std::string_view name) const {
  const Variable* const variable = find(name);
  return variable == nullptr ? std::string_view{} : trim(variable->value);
}

bool Settings::is_on(std::string_view name) const {
  constexpr std::array<std::string_view, 5> words{"1", "true", "yes", "on", "y"};
  return std::ranges::any_of(
      words, [text = value(name)](std::string_view word) { return core::equal_ignoring_case(word, text); });
}

const Variable* Settings::find_beginning(std::string_view prefix) const {
  const auto found = by_name_.lower_bound(prefix);
  return found == by_name_.end() || !found->first.starts_with(prefix) ? nullptr : found->second;
}

std::vector<Finding> find_contradictions(const Settings& settings, Fabric fabric) {
  std::vector<Finding> findings;
  for (const auto rule : rules_together)
    if (auto finding = rule(settings, fabric)) findings.push_back(std::move(*finding));
  return findings;
}

}  // namespace lockstep::site
