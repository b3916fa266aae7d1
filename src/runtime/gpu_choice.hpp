// The device of each rank: the host, or one of the GPUs that its process sees.
// Invariant: all ranks have the same kind; no two ranks share a GPU unless --share-gpu is given.
// Used by the programs, for --device and --share-gpu.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/accelerator.hpp"
#include "runtime/device_traits.hpp"
#include "runtime/gpu.hpp"
#include "runtime/topology.hpp"

namespace lockstep::runtime {

/// Values of --device; `automatic` is called auto there.
enum class DeviceKind : std::uint8_t { automatic, host, cuda };
inline constexpr std::array all_device_kinds{DeviceKind::automatic, DeviceKind::host, DeviceKind::cuda};
[[nodiscard]] std::string_view name(DeviceKind kind) noexcept;
/// The help of --device.
inline constexpr const char* device_help =
    "auto: GPUs if every rank has one, else the host; host; cuda: GPUs, or an error";
/// The kind that is no host.
inline constexpr DeviceKind accelerated = DeviceKind::cuda;

struct DeviceRequest {
  DeviceKind kind = DeviceKind::automatic;
  bool shares_gpu = false;  ///< several ranks may share a GPU
};

struct DeviceChoice {
  int number = -1;                  ///< of the GPU in this process's survey; -1: the host
  Gpu gpu{};                        ///< the GPU of that number
  int n_sharing = 1;                ///< ranks that have this GPU
  bool is_shared = false;           ///< some GPU serves several ranks
  bool has_hosts_for_nccl = false;  ///< NCCL_HOSTID differs on all ranks
  bool all_have_switches = false;   ///< Gpu::has_switches of all ranks' GPUs
  bool all_have_bf16 = false;       ///< Gpu::has_bf16() of all ranks' GPUs
  std::string why_not{};            ///< why `automatic` chose the host; empty if this program knows no GPUs
  std::string driver{};             ///< as in GpuSurvey
  std::string toolkit{};
  std::vector<std::string> all{};  ///< the UUID of each rank's GPU; none for the host
  std::vector<int> far{};          ///< ranks none of whose processors is near their GPU

  [[nodiscard]] bool is_host() const noexcept { return number < 0; }
};

/// Returns the traits of a device of this kind, which is not `automatic`. GPUs are assumed to have bf16.
[[nodiscard]] DeviceTraits traits_of(DeviceKind kind) noexcept;
[[nodiscard]] DeviceTraits traits_of(const DeviceChoice& choice) noexcept;

/// Assigns a GPU to each of the ranks that see the same GPUs, in rank order. `nearness` has a word per rank with a
/// character per GPU: '1' if a processor of the rank is near it, or if that is unknown. A rank gets a near GPU if one
/// is left, and ranks with the fewest near ones come first; the others get the rest in turn. With more ranks than GPUs
/// the assignment starts again.
[[nodiscard]] std::vector<int> assign_gpus(const std::vector<std::string>& nearness);

/// Collective. Throws core::Error (usage), the same on all ranks, if cuda is requested and some rank has no GPU, or no
/// GPU of its own.
[[nodiscard]] DeviceChoice choose_device(const Communicator& world, const Topology& topology,
                                         const DeviceRequest& request);

/// At rank 0: a warning that ranks run far from their GPU, with a fix; empty if none do.
[[nodiscard]] std::string warning_of_far_gpus(const DeviceChoice& choice, const Topology& topology);

/// Keeps the accelerator of a choice in use while it lives; does nothing for the host. Buffers and streams must not
/// outlive it.
class UseDevice {
 public:
  explicit UseDevice(const DeviceChoice& choice);
  ~UseDevice();
  UseDevice(const UseDevice&) = delete;
  UseDevice& operator=(const UseDevice&) = delete;

 private:
  bool is_in_use_;
};

}  // namespace lockstep::runtime
