// A collective on device memory: enqueued in a stream, between the kernels that produce its input and read its output.
// Invariant: making a plan is collective and may allocate and communicate; running it allocates nothing.
// Used by parallel/ and reduce_all/; a DeviceGroup makes plans, by `staged` with any transport, or by a library of the
// device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "comm/collective.hpp"
#include "runtime/communicator.hpp"
#include "runtime/device.hpp"
#include "runtime/gpu_choice.hpp"
#include "runtime/topology.hpp"

namespace lockstep::comm {

struct Algorithm;
class Transport;

/// Every rank calls all members in the same order across the plans of a group.
class DevicePlan {
 public:
  virtual ~DevicePlan() = default;

  /// Local: sets the buffers of the following runs, of exactly the call's sizes. In place as for comm::Plan::bind().
  virtual void bind(runtime::DeviceSpan<const std::byte> input, runtime::DeviceSpan<std::byte> output) = 0;

  /// Collective: starts the call after all earlier operations of `stream`. The buffers belong to the plan until
  /// finish().
  virtual void start(runtime::Stream& stream) = 0;
  /// Collective, after start(): later operations of `stream` begin when the call is complete.
  virtual void finish(runtime::Stream& stream) = 0;
  /// Collective: start() and finish(), for a stream without other work in between.
  virtual void run(runtime::Stream& stream) {
    start(stream);
    finish(stream);
  }
};

/// How a library of the devices registers memory before its calls use it. Enumerators equal the words of the command
/// line.
enum class Registration : std::uint8_t {
  none,
  local,      ///< by each rank's communicator for itself: network and switches then read it directly, without a copy
  symmetric,  ///< as one window over all ranks, so that kernels of each rank reach the memory of all
};
inline constexpr std::array all_registrations{Registration::none, Registration::local, Registration::symmetric};
[[nodiscard]] std::string_view name(Registration registration) noexcept;

/// The connections of this rank's devices, as far as the library reports them.
struct Connection {
  std::string network{};  ///< between nodes: "IB", "Socket", "AWS Libfabric"; for jobs of several nodes
  int n_channels = 0;     ///< used by a call at a time, a thread block each; 0: unknown
};

/// Memory registered with a group while this lives; both must outlive it. Calls use the same places in it on all ranks,
/// except for a rank's own part.
class Registered {
 public:
  virtual ~Registered() = default;
};

/// In bytes: GPUs copy in smaller pieces if the begin is not a multiple of 16.
inline constexpr std::size_t exchange_alignment = 512;

/// The ranks of a transport, and one implementation of collectives on their devices.
class DeviceGroup {
 public:
  virtual ~DeviceGroup() = default;
  /// The name of its row in the registry.
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  /// Whether start() and finish() only enqueue, so that the host never waits in them and a recorded stream may contain
  /// them.
  [[nodiscard]] virtual bool only_enqueues() const noexcept = 0;
  /// Collective. Throws core::Error (usage) if this implementation does not support the call. The group must outlive
  /// it.
  [[nodiscard]] virtual std::unique_ptr<DevicePlan> make_plan(const Call& call) = 0;
  /// Collective: the same implementation for `part`, consecutive ranks; each rank is in one part. Calls of both groups
  /// may share a stream, so all ranks must start them in the same order. Both groups must outlive it.
  [[nodiscard]] virtual std::unique_ptr<DeviceGroup> split(Transport& part) = 0;
  /// Collective: a plan in which the ranks form a ring. Each sends `bytes` to the `n_neighbours` ranks right of it, in
  /// equal parts (core::partition by exchange_alignment), and receives as much from those left of it. bind() takes the
  /// sent and the received bytes. Needs more than `n_neighbours` ranks. Null if data cannot go from device to device.
  /// The group must outlive it.
  [[nodiscard]] virtual std::unique_ptr<DevicePlan> make_exchange(core::Bytes /*bytes*/, int /*n_neighbours*/) {
    return nullptr;
  }
  /// Collective: connects, unless a plan has already done so.
  [[nodiscard]] virtual Connection connection() { return {}; }
  /// Whether register_memory() has a library to register with.
  [[nodiscard]] virtual bool registers() const noexcept { return false; }
  /// Collective: the memory is everything that allocate_to_register() returned, the same number of bytes on every rank.
  /// From then on all buffers of the group's plans must be registered, except those of exchanges. Null on all ranks if
  /// the library of one rank does not register it.
  [[nodiscard]] virtual std::unique_ptr<Registered> register_memory(runtime::DeviceSpan<std::byte> /*memory*/,
                                                                    Registration /*how*/) {
    return nullptr;
  }
  /// Local: throws core::Error (system) if a library has noticed by itself that its calls will not complete.
  virtual void check() {}
};

/// Returns when all operations of a stream, or an event, are done; throws errors that the group notices meanwhile.
/// Keeps a core busy.
template <class Enqueued>
void wait(const Enqueued& enqueued, DeviceGroup& group) {
  while (!enqueued.is_done()) {
    group.check();
    std::this_thread::yield();  // threads of the library may need this core
  }
}

/// Collective: makes a group for the GPUs that the ranks have chosen, with the algorithm of choose_for_devices() for an
/// all_reduce. The transport must outlive it.
[[nodiscard]] std::unique_ptr<DeviceGroup> make_device_group(Transport& transport, const runtime::DeviceChoice& choice);

/// How the devices of all ranks are connected, in a user's words; the same on all ranks.
struct AllConnections {
  std::string networks{};  ///< "IB", or "IB, Socket" if ranks differ; empty on one node, or if unknown
  int n_channels = 0;      ///< rank 0's
  std::string warning{};   ///< if ranks of several nodes use TCP sockets; else empty
};

/// Collective: `mine` is this rank's DeviceGroup::connection().
[[nodiscard]] AllConnections gather_connections(const runtime::Communicator& world, const runtime::Topology& topology,
                                                const Connection& mine);

/// The library of the devices, for messages.
inline constexpr std::string_view device_library = "NCCL";

/// What this program lacks to sum from device to device; empty if nothing.
[[nodiscard]] std::string_view lacking_for_devices();

/// The version of the GPU library in use: "2.28.9"; empty if the program is built without one.
[[nodiscard]] std::string nccl_version();

/// Call this before any other use of the library: the one found at the start of the program may differ from the one
/// that the program was built with. Throws core::Error (usage) if it is older than 2.18. Newer functions are used only
/// if it has them.
void require_nccl();

/// What this program lacks for the registration, "needs NCCL 2.28.7 or newer, and ..."; nothing if it is supported.
[[nodiscard]] std::optional<std::string> registration_obstacle(Registration registration);

/// Device memory that a group can register. Throws core::Error (system) if there is not enough.
[[nodiscard]] runtime::Buffer allocate_to_register(core::Bytes size);

/// Makes a group that copies to pinned memory and runs an algorithm of the host there, to the bits of that algorithm.
/// The algorithm is `by`; without one, choose() chooses it for each call. Works with any transport, also if ranks share
/// a GPU. start() enqueues the copy to the host, and finish() waits for that copy alone: kernels that are enqueued
/// after the copy run while the ranks communicate. The transport must outlive the group.
[[nodiscard]] std::unique_ptr<DeviceGroup> make_staged(Transport& transport, const Algorithm* by = nullptr);

}  // namespace lockstep::comm
