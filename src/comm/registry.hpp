// The table of algorithms, and the choice among them: the only place with names of algorithms.
// Invariant: names never change once released; reduce_all, the trainer, the tests and the documentation all read this
// table.
// Used by all code that communicates, or lets a user choose an algorithm.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "comm/collective.hpp"
#include "comm/device_plan.hpp"
#include "comm/plan.hpp"
#include "comm/transport.hpp"
#include "core/units.hpp"

namespace lockstep::comm {

/// The network traffic of one call, summed over all ranks; memory shared on a node does not count.
struct Cost {
  /// The maximum number of messages in sequence (exact for a power of two); segments overlap.
  std::uint64_t steps = 0;
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
};

using MakePlan = std::unique_ptr<Plan> (*)(Transport& transport, const Call& call);
using CostFormula = Cost (*)(const Call& call, std::span<const int> nodes);

/// How an algorithm implements one collective; both null if it does not.
struct Implementation {
  MakePlan make = nullptr;
  CostFormula cost = nullptr;  ///< null if the library hides it (`mpi`)
};

/// The requirements of an algorithm; the last three are for device memory.
enum class Needs : std::uint8_t { nothing, mpi_processes, one_node, several_nodes, devices, own_devices, switches };

/// Where the ranks compute and keep their vectors.
enum class Devices : std::uint8_t {
  none,     ///< the host
  shared,   ///< GPUs, some of which serve several ranks, which NCCL does not support
  own,      ///< GPUs, one each, or DeviceChoice::has_hosts_for_nccl
  switched  ///< as `own`, and switches between the GPUs of a node add up
};

[[nodiscard]] Devices devices_of(const runtime::DeviceChoice& choice) noexcept;

/// Collective: `row` is the algorithm's own row.
using MakeGroup = std::unique_ptr<DeviceGroup> (*)(const Algorithm& row, Transport& transport);
/// Like obstacle(), but only about this algorithm.
using WhyNot = std::optional<std::string> (*)(const Call& call, const Transport& transport);

struct Algorithm {
  std::string_view name;
  std::string_view summary;
  std::string_view steps;  ///< formula in P (ranks) for all_reduce, or for the others if it does no all_reduce
  std::string_view bytes;  ///< sent per rank for the same, in S (bytes of the vector) and P
  Implementation all_reduce;
  Implementation reduce_scatter;
  Implementation all_gather;
  Needs needs = Needs::nothing;
  MakeGroup group = nullptr;  ///< for device algorithms, which have no Implementation
  WhyNot why_not = nullptr;
  bool is_variant = false;  ///< used only if it is named

  bool only_all_reduce = false;  ///< device algorithms that have no other collective
  bool keeps_order = false;      ///< sums in the tree of a call whose order is fixed

  [[nodiscard]] bool is_for_devices() const noexcept { return group != nullptr; }
  [[nodiscard]] bool does(Collective collective) const noexcept;
  [[nodiscard]] const Implementation& implementation(Collective collective) const noexcept;
};

/// The table, in the order shown to users.
[[nodiscard]] std::span<const Algorithm> algorithms() noexcept;
[[nodiscard]] const Algorithm* find_algorithm(std::string_view name) noexcept;

/// The cost of messages up to this size is their number, that of longer ones their bytes.
inline constexpr core::Bytes largest_short_message{std::uint64_t{16} << 10};

struct Choice {
  const Algorithm* algorithm = nullptr;
  /// Whether training sums and updates in one pass through the node's shared memory; `algorithm` is then only the
  /// communication.
  bool is_fused = false;
};

/// Chooses the algorithm for `call` over ranks on these nodes, one without an obstacle(). On one node, that is shared
/// memory. On several nodes, a reduce_scatter or all_gather takes a ring. An all_reduce takes recursive doubling for
/// short vectors. For longer ones it is hierarchical if nodes have several ranks. With one rank per node it takes
/// Rabenseifner's algorithm, or a ring if the number of ranks is not a power of two. Training sums the gradients of a
/// node first, and then asks for each owner's slice, with one rank per node.
///
/// If the call's order is fixed, sums follow a binary tree over ranks, and other algorithms replace those above. For an
/// all_reduce, recursive doubling pairs rank r with r^1, then pairs with pairs, ..., and both sides add the lower ranks
/// first. For a reduce_scatter or all_gather, recursive halving gives each element the same bits. Training uses the
/// same tree through shared memory on a node, and through these algorithms between nodes.
///
/// A pure function, so all ranks get the same.
[[nodiscard]] Choice choose(const Call& call, std::span<const int> nodes);

/// Chooses the algorithm for vectors on devices: that of the devices' library if it supports the call and each rank has
/// its own device, else one through the host.
[[nodiscard]] const Algorithm& choose_for_devices(const Call& call, const Transport& transport, Devices devices);

/// Why `algorithm` does not support `call` over these ranks with such devices, as the end of "NAME ..."; nothing if it
/// does.
[[nodiscard]] std::optional<std::string> obstacle(const Algorithm& algorithm, const Call& call,
                                                  const Transport& transport, Devices devices = Devices::none);

/// Whether switches between these devices, or those of a network that NCCL uses (NCCL_COLLNET_ENABLE), may combine
/// vectors in transit.
[[nodiscard]] bool may_be_added_up_on_the_way(const Call& call, Devices devices);

/// Collective: prepares `call` on the host. Throws core::Error (usage) if there is an obstacle().
[[nodiscard]] std::unique_ptr<Plan> make_plan(const Algorithm& algorithm, Transport& transport, const Call& call);

/// Collective: prepares `call` for the algorithm that choose() gives.
[[nodiscard]] std::unique_ptr<Plan> make_plan(Transport& transport, const Call& call);

}  // namespace lockstep::comm
