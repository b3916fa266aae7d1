#include "reduce_all/preflight.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "core/instruction_sets.hpp"
#include "core/version.hpp"
#include "reduce_all/buffers.hpp"
#include "reduce_all/checker.hpp"
#include "runtime/memory.hpp"

namespace lockstep::reduce_all {
namespace {

// From the build; empty without sanitizers.
constexpr std::string_view sanitizers = LOCKSTEP_SANITIZE;

constexpr std::uint64_t line = 64;  // of a cache

// The memory of a rank, on its node, for vectors of up to `largest`: two of them, unless they are on a device. The
// plans of all algorithms exist together; their scratch takes up to three vectors, including data that passes through
// the host.
core::Bytes footprint(core::Bytes largest, BufferMode mode) {
  const core::Bytes pool = runtime::is_host_the_device()
                               ? BufferPool::footprint(largest, mode, runtime::last_level_cache())
                               : core::Bytes{0};
  return {pool.value + 3 * largest.value};
}
int n_vectors() { return runtime::is_host_the_device() ? 5 : 3; }

// The memory of a rank for the times of a size: its own, and for finding and sorting the slowest rank's.
core::Bytes samples_footprint(const Options& options, std::size_t n_participants) {
  const auto n_samples = static_cast<std::uint64_t>(options.iterations);
  return {n_samples * sizeof(double) * (n_participants + 3 + 3)};  // 3: the limit's
}

// The size of a vector whose footprint is `per_rank`; 0 if even an empty one does not fit.
core::Bytes largest_fitting(core::Bytes per_rank, BufferMode mode) {
  const core::Bytes fixed = footprint({}, mode);
  return {per_rank > fixed ? (per_rank.value - fixed.value) / static_cast<std::uint64_t>(n_vectors()) : 0};
}

// The memory of a device for vectors of up to `largest`.
core::Bytes device_footprint(core::Bytes largest, BufferMode mode, core::Bytes cache) {
  return {BufferPool::footprint(largest, mode, cache).value + Checker::footprint(largest).value};
}

// The size of a vector, in whole cache lines, whose device_footprint() is at most `room`; 0 if none fits.
core::Bytes largest_on_device(core::Bytes room, BufferMode mode, core::Bytes cache) {
  std::uint64_t fits = 0, too_much = room.value / line + 1;
  while (too_much - fits > 1) {
    const std::uint64_t middle = fits + (too_much - fits) / 2;
    (device_footprint({middle * line}, mode, cache) <= room ? fits : too_much) = middle;
  }
  return {fits * line};
}

// Rounded up to a readable number.
std::string readable(core::Bytes size) {
  const int exponent = size.value >> 20 > 0 ? 20 : size.value >> 10 > 0 ? 10 : 0;
  return core::format_bytes({(((size.value - 1) >> exponent) + 1) << exponent});
}

// As -e accepts it, rounded down to whole cache lines, like buffers.
std::string size_word(core::Bytes size) {
  if (size.value >> 20 > 0) return fmt::format("{}M", size.value >> 20);
  return size.value >> 10 > 0 ? fmt::format("{}K", size.value >> 10) : fmt::format("{}", size.value / line * line);
}

// `instead`: another way to make room.
std::string use_at_most(core::Bytes size, const Options& options, const std::string& instead) {
  if (size.value < line) return instead;
  const bool is_below_all = size < options.min_bytes;
  return fmt::format("use {}-e {} or less, or {}", is_below_all ? "-b and " : "", size_word(size), instead);
}

void check_drill(const runtime::Drill& drill, std::span<const comm::Call> calls, int n_ranks) {
  drill.require_ranks(n_ranks);
  for (const runtime::Fault& fault : drill.named("wrong")) {
    std::size_t most = 0;
    for (const comm::Call& call : calls) most = std::max(most, call.output(fault.rank, n_ranks).count);
    if (fault.number >= most)
      core::fail_usage({.what = fmt::format("rank {} has no output with element {}", fault.rank, fault.number),
                        .where = "--inject",
                        .expected = fmt::format("an index below {}", most),
                        .fix = "name a smaller index or measure larger sizes"});
  }
}

}  // namespace

void check_world(const Options& options, std::span<const comm::Call> calls, int n_ranks) {
  runtime::check_n_ranks(options.expect_ranks, options.nproc, n_ranks);
  if (options.drill) check_drill(*options.drill, calls, n_ranks);
}

void check_memory(const Options& options, core::Bytes largest, const runtime::Topology& topology, int rank,
                  std::size_t n_participants) {
  const core::Bytes available = runtime::available_memory();
  const runtime::Place& here = topology.places[static_cast<std::size_t>(rank)];
  const auto n_local = static_cast<std::uint64_t>(topology.n_local_ranks(rank));
  const bool is_absurd = largest.value > (std::uint64_t{1} << 60);
  const core::Bytes samples = samples_footprint(options, n_participants);
  const core::Bytes per_rank =
      is_absurd ? largest : core::Bytes{footprint(largest, options.buffers).value + samples.value};
  if (available.value == 0 || per_rank.value <= available.value / n_local) return;  // divided, as sizes may be absurd
  const core::Bytes room{available.value / n_local};
  const std::string ranks = fmt::format("{} rank{} on {}", n_local, n_local == 1 ? "" : "s", here.host);
  if (samples > room)
    core::fail_usage({.what = fmt::format("{}: {} times of every algorithm need more memory than the {} that are left",
                                          ranks, options.iterations, core::format_bytes({available.value >> 20 << 20})),
                      .where = "--iterations",
                      .expected = "room for the times of one size",
                      .fix = "use a smaller -n, fewer algorithms, or fewer ranks per node"});
  core::fail_usage({.what = fmt::format("{}: vectors of {} need more memory than the {} that are left", ranks,
                                        core::format_bytes(largest), core::format_bytes({available.value >> 20 << 20})),
                    .where = "--max-bytes",
                    .expected = fmt::format("room for about {} vectors per rank", n_vectors()),
                    .fix = use_at_most(largest_fitting({room.value - samples.value}, options.buffers), options,
                                       "fewer ranks per node")});
}

void check_device_memory(const Options& options, core::Bytes largest, core::Bytes exchanged,
                         const runtime::DeviceChoice& device, int n_local_ranks) {
  if (device.is_host()) return;
  const auto n_sharing = static_cast<std::uint64_t>(device.is_shared ? n_local_ranks : 1);
  const core::Bytes room{device.gpu.memory.value / n_sharing};
  const std::uint64_t beside = 2 * exchanged.value;
  const core::Bytes needed{device_footprint(largest, options.buffers, device.gpu.cache).value + beside};
  if (needed <= room) return;
  const core::Bytes room_for_vectors{room.value - std::min(room.value, beside)};
  core::fail_usage({.what = fmt::format("vectors of {} need {} of GPU {}, which has {}{}", core::format_bytes(largest),
                                        readable(needed), device.gpu.uuid, core::format_bytes(device.gpu.memory),
                                        n_sharing > 1 ? fmt::format(" for {} ranks", n_sharing) : ""),
                    .where = "--max-bytes",
                    .expected = "room for two vectors per rank",
                    .fix = use_at_most(largest_on_device(room_for_vectors, options.buffers, device.gpu.cache), options,
                                       n_sharing > 1 ? "fewer ranks on a GPU" : "--device host")});
}

std::vector<std::string> find_warnings(const runtime::Topology& topology, const runtime::DeviceChoice& device,
                                       const comm::AllConnections& connections) {
  std::vector<std::string> warnings = topology.warnings();
  if (core::is_debug_build())
    warnings.push_back(fmt::format("this is a {} build: a Release build may be faster", core::build_type()));
  if (!sanitizers.empty())
    warnings.push_back(fmt::format("this build has sanitizers ({}): its times mean nothing", sanitizers));
  for (const std::string& warning :
       {runtime::warning_of_far_gpus(device, topology), connections.warning, core::instruction_limit_warning()})
    if (!warning.empty()) warnings.push_back(warning);
  return warnings;
}

namespace {

std::string begin_limit(bool is_of_two) {
  return fmt::format("algbw as a share of {}, measured at every size in this run: ",
                     is_of_two ? "the slower of two limits" : "this limit");
}

constexpr std::string_view without_network = "; the network between nodes is not included";

}  // namespace

std::string describe_limit_of_devices(const Options& options, const runtime::Topology& topology, bool has_links) {
  const bool is_whole = options.collective == comm::Collective::all_reduce;
  std::string text = begin_limit(has_links);
  text += fmt::format(
      "all ranks copy their vectors within the memory of their GPUs at the same time (as many copies per wait as "
      "calls{})",
      is_whole ? "" : "; scaled to the part that is read or written");
  if (has_links)
    text += fmt::format(
        "; all ranks exchange what they need over the links between their GPUs ({}; with one neighbour or with all, "
        "whichever is faster)",
        is_whole ? "2(P-1)/P of the vector, or all of it once where switches reduce" : "(P-1)/P of the vector");
  if (topology.n_nodes > 1 && !has_links) text += without_network;
  return text;
}

std::string describe_limit(const Options& options, const runtime::Topology& topology, bool reads_from_others) {
  const bool is_whole = options.collective == comm::Collective::all_reduce;
  std::string text = begin_limit(reads_from_others);
  text += fmt::format("all ranks copy their vectors at the same time (one read, one write{}{})",
                      is_whole ? "" : "; scaled to the part that is read or written",
                      reads_from_others ? "" : "; vectors that fit into a cache are copied there");
  if (reads_from_others)
    text += fmt::format("; all ranks read what they need from other cores ({}(P-1)/P of the vector, just written)",
                        is_whole ? "2" : "");
  if (topology.n_nodes > 1) text += without_network;
  return text;
}

}  // namespace lockstep::reduce_all
