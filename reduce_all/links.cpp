#include "reduce_all/links.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "core/error.hpp"
#include "core/statistics.hpp"
#include "core/timer.hpp"
#include "runtime/device.hpp"

namespace lockstep::reduce_all {
namespace {

constexpr core::Bytes copied_to_host{64 << 20};
constexpr std::size_t n_copies_to_host = 5;

struct SlowestCopy {
  double GBps = 0;
  int rank = 0;
};

// Collective; for rank 0 only. Returns the median of each rank, without the first copy.
template <class Copy>
SlowestCopy time_copies(const runtime::Communicator& world, runtime::Stream& stream, const Copy& copy) {
  std::array<double, 1 + n_copies_to_host> seconds{};
  for (double& one : seconds) {
    world.barrier();
    const core::Stopwatch watch;
    copy();
    while (!stream.is_done()) {  // as comm::wait() has it
    }
    one = watch.elapsed().value;
  }
  const double median = core::summarize(std::span{seconds}.subspan(1)).median;
  const std::vector<double> of_all = runtime::gather_values(world, std::span<const double>{&median, 1});
  if (of_all.empty()) return {};
  const auto slowest = std::ranges::max_element(of_all);
  return {core::gigabytes_per_second(copied_to_host, {*slowest}), static_cast<int>(slowest - of_all.begin())};
}

}  // namespace

bool may_have_links(const runtime::DeviceChoice& device, const runtime::Topology& topology) {
  const std::size_t n_ranks = topology.places.size();
  const bool is_ring_of_links = topology.n_nodes == 1 || static_cast<std::size_t>(topology.n_nodes) == n_ranks;
  return !device.is_host() && !device.is_shared && n_ranks > 1 && is_ring_of_links;
}

std::optional<HostLink> measure_host_link(const runtime::Communicator& world) {
  runtime::Buffer here, there;
  const auto complaint = core::complaint_of([&] {
    here = runtime::Buffer{copied_to_host, runtime::Memory::pinned};
    there = runtime::Buffer{copied_to_host, runtime::Memory::device};
  });
  if (world.any(complaint.has_value())) return std::nullopt;
  runtime::Stream stream;
  const SlowestCopy to = time_copies(world, stream, [&] { stream.copy(there.on_device<std::byte>(), here.bytes()); });
  const SlowestCopy from = time_copies(world, stream, [&] { stream.copy(here.bytes(), there.on_device<std::byte>()); });
  return HostLink{to.GBps, from.GBps, to.rank, from.rank};
}

std::string describe_host_link(const HostLink& link, std::size_t n_ranks) {
  std::string slowest;
  if (n_ranks > 1)
    slowest = link.slowest_to_gpu == link.slowest_from_gpu
                  ? fmt::format(" (slowest: rank {})", link.slowest_to_gpu)
                  : fmt::format(" (slowest: rank {}, back rank {})", link.slowest_to_gpu, link.slowest_from_gpu);
  return fmt::format("{:.1f} GB/s to the GPU, {:.1f} back{}", link.to_gpu_GBps, link.from_gpu_GBps, slowest);
}

}  // namespace lockstep::reduce_all
