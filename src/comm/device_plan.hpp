// A collective on memory of devices: enqueued in a stream, among the kernels that make its input and read its output.
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
#include "runtime/device.hpp"
#include "runtime/gpu_choice.hpp"

namespace lockstep::comm {

struct Algorithm;
class Transport;

/// All members are to be called by every rank in the same order across the plans of a group.
class DevicePlan {
 public:
  virtual ~DevicePlan() = default;

  /// Local: the buffers of the following runs, of exactly the call's sizes. In place as comm::Plan::bind() has it.
  virtual void bind(runtime::DeviceSpan<const std::byte> input, runtime::DeviceSpan<std::byte> output) = 0;

  /// Collective: begins the call when all is done that `stream` was given before. The buffers belong to the plan until
  /// finish().
  virtual void start(runtime::Stream& stream) = 0;
  /// Collective, after start(): what `stream` is given from here on begins when the call is complete.
  virtual void finish(runtime::Stream& stream) = 0;
  /// Collective: both at once, for a stream that has nothing else to do meanwhile.
  virtual void run(runtime::Stream& stream) {
    start(stream);
    finish(stream);
  }
};

/// How a library of the devices knows memory before its calls use it. Enumerators equal the words of the command line.
enum class Registration : std::uint8_t {
  none,
  local,      ///< by each rank's communicator for itself: network and switches then take it from there, without a copy
  symmetric,  ///< as one window over all ranks, whose memory the kernels of each can then reach
};
inline constexpr std::array all_registrations{Registration::none, Registration::local, Registration::symmetric};
[[nodiscard]] std::string_view name(Registration registration) noexcept;

/// What a library has connected the devices of this rank by, as far as it says.
struct Connection {
  std::string network{};  ///< between nodes: "IB", "Socket", "AWS Libfabric"; used where there are several
  int n_channels = 0;     ///< that carry a call at a time, a thread block each; 0: unknown
};

/// Memory that a group knows while this lives; both must outlive it. Calls use the same places of it on all ranks,
/// except for a rank's own part.
class Registered {
 public:
  virtual ~Registered() = default;
};

/// In bytes: GPUs copy what begins at no multiple of 16 in smaller pieces.
inline constexpr std::size_t exchange_alignment = 512;

/// The ranks of a transport, and one way in which their devices do collectives.
class DeviceGroup {
 public:
  virtual ~DeviceGroup() = default;
  /// Of its row in the registry.
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  /// Whether start() and finish() only enqueue, so that the host never waits in them and a stream that is recorded may
  /// hold them.
  [[nodiscard]] virtual bool only_enqueues() const noexcept = 0;
  /// Collective. Throws core::Error (usage) if this way cannot do it. The group must outlive it.
  [[nodiscard]] virtual std::unique_ptr<DevicePlan> make_plan(const Call& call) = 0;
  /// Collective: the same way for `part`, some of the ranks in a row; each rank is in one. Calls of both may be in one
  /// stream, so all ranks must start them in the same order, whichever of the two they are of. Both must outlive it.
  [[nodiscard]] virtual std::unique_ptr<DeviceGroup> split(Transport& part) = 0;
  /// Collective: a plan by which each rank sends `bytes`, equal parts (core::partition by exchange_alignment) to as
  /// many ranks right of it in their ring, and receives as many from those left of it: bind() to what is sent and what
  /// is received. For more than `n_neighbours` ranks. Null where this way does not go from device to device. The group
  /// must outlive it.
  [[nodiscard]] virtual std::unique_ptr<DevicePlan> make_exchange(core::Bytes /*bytes*/, int /*n_neighbours*/) {
    return nullptr;
  }
  /// Collective: connects, unless a plan has.
  [[nodiscard]] virtual Connection connection() { return {}; }
  /// Whether there is a library that register_memory() tells of memory.
  [[nodiscard]] virtual bool registers() const noexcept { return false; }
  /// Collective: the memory is all that allocate_to_register() gave, for as many bytes on every rank. From then on all
  /// buffers of the group's plans must be registered, but those of exchanges. Null on all ranks if the library of one
  /// does not register it.
  [[nodiscard]] virtual std::unique_ptr<Registered> register_memory(runtime::DeviceSpan<std::byte> /*memory*/,
                                                                    Registration /*how*/) {
    return nullptr;
  }
  /// Local: throws core::Error (system) if a library has noticed by itself that its calls will not complete.
  virtual void check() {}
};

/// Returns when all that a stream was given, or an event, is done; throws what the group notices in the meantime. Keeps
/// a core busy.
template <class Enqueued>
void wait(const Enqueued& enqueued, DeviceGroup& group) {
  while (!enqueued.is_done()) {
    group.check();
    std::this_thread::yield();  // threads of the library may have no other core
  }
}

/// Collective: for the GPUs that the ranks have chosen, by what choose_for_devices() gives for an all_reduce. The
/// transport must outlive it.
[[nodiscard]] std::unique_ptr<DeviceGroup> make_device_group(Transport& transport, const runtime::DeviceChoice& choice);

/// Of the library for GPUs that is in use: "2.28.9"; empty if the program is built without.
[[nodiscard]] std::string nccl_version();

/// Before anything else is asked of the library that was found when the program started, as that may not be the one it
/// was built with. Throws core::Error (usage) if it is older than 2.18; what is newer is asked only of one that has it.
void require_nccl();

/// What this program lacks for that, "needs NCCL 2.28.7 or newer, and ..."; nothing if it can be asked for.
[[nodiscard]] std::optional<std::string> registration_obstacle(Registration registration);

/// Memory of the device that a group can register. Throws core::Error (system) if it cannot be had.
[[nodiscard]] runtime::Buffer allocate_to_register(core::Bytes size);

/// What the host does with the vectors that it gets from the devices.
struct Staging {
  const Algorithm* by = nullptr;  ///< null: what choose() gives for each call
  bool is_order_fixed = false;    ///< what choose() is asked for
};

/// Through pinned memory and an algorithm of the host, whose bits the result has: with any transport, also where ranks
/// share a GPU. start() enqueues the copy to the host, and finish() waits for that copy alone: kernels that were
/// enqueued behind it go on while the ranks communicate. The transport must outlive the group.
[[nodiscard]] std::unique_ptr<DeviceGroup> make_staged(Transport& transport, const Staging& staging = {});

}  // namespace lockstep::comm
