#include "training/train/memory.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <numeric>
#include <system_error>
#include <variant>

#include "core/error.hpp"
#include "core/suggest.hpp"
#include "core/units.hpp"
#include "optim/optimizer.hpp"
#include "runtime/accelerator.hpp"
#include "runtime/together.hpp"
#include "training/recipe/cuts.hpp"
#include "training/recipe/specs.hpp"
#include "training/train/model.hpp"

namespace lockstep::training {
namespace {

std::string remedies(const Recipe& recipe, const MemoryNeed& need, const Fitting& fitting, std::uint64_t n_local,
                     int n_ranks) {
  std::vector<std::string> remedies;
  const auto of_group = [&](const Recipe& other) {
    return other.bn_group == recipe.bn_group
               ? ""
               : fmt::format(" (and --bn-group {}, if flag or recipe gives one)", other.bn_group);
  };
  std::string of_batch;
  if (fitting.smaller)
    of_batch = fmt::format("--batch {} or less{}", fitting.smaller->batch, of_group(*fitting.smaller));
  if (fitting.in_parts && need.is_of_training)
    of_batch += fmt::format(", or --accumulate {} or more{}, which computes parts of a batch one after another{}",
                            fitting.in_parts->accumulate, of_group(*fitting.in_parts),
                            recipe.has_lanes() ? ", as more --lanes do" : "");
  if (!of_batch.empty()) remedies.push_back(of_batch);
  // In a device's own memory, a 16-bit precision also needs a copy of the parameters.
  const bool has_own_memory = recipe.device.has_own_memory;
  if (recipe.precision == nn::Precision::f32 && (!has_own_memory || need.activations > 2 * need.arena))
    remedies.emplace_back(has_own_memory ? "--precision auto" : "--precision bf16");
  const bool has_more_nodes = static_cast<std::uint64_t>(n_ranks) > n_local;
  if (!has_own_memory && has_more_nodes && need.optimizer > 0 && !parallel::divides_states(recipe.strategy))
    remedies.emplace_back("--strategy zero1, which divides the optimizer's state among all nodes");
  if (n_local > 1) remedies.emplace_back("fewer ranks per node");
  remedies.emplace_back(has_own_memory ? "--device host --dry-run reports the need on a host"
                                       : "--dry-run reports the need of a run");
  return core::join(remedies, "; ");
}

struct Room {
  std::uint64_t bytes;  ///< that exist
  std::uint64_t needed;
  std::uint64_t n_sharing;  ///< ranks that share it
  std::string who;
  std::string left;
};

[[noreturn]] void fail_memory(const Recipe& recipe, const MemoryNeed& need, std::uint64_t n_local, int n_ranks,
                              const Room& room, std::uint64_t for_activations, const PlanActivations& plan) {
  const auto text = [](std::uint64_t bytes) { return core::format_decimal({bytes}); };
  const TooLarge all{need.activations, need.at_a_time, need.batch, for_activations};
  core::fail_usage({.what = fmt::format("{} need{} {}, including {} for activations, but {} {}", room.who,
                                        room.n_sharing > 1 ? "" : "s", text(room.needed),
                                        text(room.n_sharing * need.activations), room.left, text(room.bytes)),
                    .where = "memory",
                    .expected = "room for activations, parameters, gradients and the optimizer's state",
                    .fix = remedies(recipe, need, find_fitting(recipe, all, n_ranks, plan), n_local, n_ranks)});
}

std::uint64_t less(std::uint64_t bytes, std::uint64_t others) { return bytes - std::min(bytes, others); }

/// Plans at most this many samples at a time: memory grows in proportion beyond, and the time to plan groups grows with
/// its square.
constexpr std::uint64_t most_planned = 4096;

/// Without timing, which takes memory; reuses code that was compiled for it.
std::unique_ptr<nn::Executor> executor_for(nn::Device& device, const Recipe& recipe, const nn::Network& network,
                                           std::uint64_t n, int n_ranks) {
  nn::ExecutorOptions options = executor_options(recipe, n);
  options.is_group_of_ranks = ranks_of_group(recipe, n_ranks) > 1;
  options.is_deterministic = true;
  return device.make_executor(network, options);
}

struct Planned {
  std::uint64_t activations;
  std::uint64_t arena;
  std::uint64_t weights;
};

Planned plan(nn::Device& device, const Recipe& recipe, const nn::Network& network, std::uint64_t at_a_time,
             int n_ranks) {
  const std::uint64_t n = std::min(at_a_time, whole_groups(recipe, most_planned));
  const auto executor = executor_for(device, recipe, network, n, n_ranks);
  Planned planned{.activations = executor->n_bytes(),
                  .arena = executor->arena_elements() * sizeof(float),
                  .weights = executor->weights_bytes()};
  if (const std::uint64_t fewer = whole_groups(recipe, n / 2); n < at_a_time && fewer < n) {
    const std::uint64_t of_fewer =
        std::min<std::uint64_t>(planned.activations, executor_for(device, recipe, network, fewer, n_ranks)->n_bytes());
    planned.activations += (planned.activations - of_fewer) / (n - fewer) * (at_a_time - n);
  }
  return planned;
}

std::uint64_t n_states(const Recipe& recipe) { return optim::Optimizer{recipe.optimizer, {}, 0}.state().size(); }

/// Checks parameters and gradients, which the ranks of a node share.
void check_shared_room(const MemoryNeed& need, std::uint64_t n_local, const std::string& host) {
  if (n_local == 1) return;
  std::error_code error;
  const std::filesystem::space_info room = std::filesystem::space("/dev/shm", error);
  if (!error && room.capacity > 0) compare_shared_room(need, n_local, host, room.available);
}

/// Used by this process: libraries for GPUs alone take some hundred MB.
std::uint64_t address_space_taken() {
  std::uint64_t n_pages = 0;
  std::ifstream{"/proc/self/statm"} >> n_pages;
  return n_pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

void require_address_space() {
  constexpr std::uint64_t of_host = 300'000'000, beyond_now = 110'000'000;
  const std::uint64_t least = std::max(of_host, address_space_taken() + beyond_now);
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= least) return;
  core::fail_usage({.what = fmt::format("an address space of {} is too small for the libraries of training",
                                        core::format_decimal({limit.rlim_cur})),
                    .where = "the limit of this process (ulimit -v)",
                    .expected = fmt::format("at least {}", core::format_decimal({least})),
                    .fix = "raise it: ulimit -v unlimited"});
}

std::uint64_t whole_groups(const Recipe& recipe, std::uint64_t n) noexcept {
  const std::uint64_t of_group = std::max<std::uint64_t>(1, recipe.bn_group);
  return std::max<std::uint64_t>(1, n / of_group) * of_group;
}

MemoryNeed memory_need(nn::Device& device, const Recipe& recipe, const nn::Network& network, std::uint64_t most,
                       int n_ranks, std::uint64_t n_local) {
  MemoryNeed need{.at_a_time = samples_at_a_time(recipe, most, n_ranks),
                  .batch = std::min(recipe.batch, most * static_cast<std::uint64_t>(n_ranks))};
  const Planned planned = plan(device, recipe, network, need.at_a_time, n_ranks);
  need.activations = planned.activations;
  need.arena = planned.arena;
  need.weights = planned.weights;
  const std::uint64_t owned = owned_bytes(recipe, network, need.arena, n_ranks, n_local);
  need.optimizer = n_states(recipe) * (recipe.device.has_own_memory ? need.arena : owned);
  need.copy = copy_bytes(recipe, owned);
  if (recipe.has_lanes())  // sums that wait for their other half: see parallel::Lanes
    need.optimizer +=
        static_cast<std::uint64_t>(std::popcount(recipe.lanes / static_cast<std::uint64_t>(n_ranks) - 1)) * need.arena;
  return need;
}

PlanActivations activations_planner(nn::Device& device, const nn::Network& network, int n_ranks) {
  return [&device, &network, n_ranks](const Recipe& recipe, std::uint64_t at_a_time) {
    return plan(device, recipe, network, at_a_time, n_ranks).activations;
  };
}

std::uint64_t owned_bytes(const Recipe& recipe, const nn::Network& network, std::uint64_t arena_bytes, int n_ranks,
                          std::uint64_t n_local) {
  const auto n_all = static_cast<std::uint64_t>(n_ranks);
  if (recipe.device.has_own_memory) return arena_bytes / n_all;
  if (!parallel::divides_states(recipe.strategy)) return arena_bytes / n_local;
  std::uint64_t of_tables = 0;
  for (const nn::Node& node : network.nodes())
    if (const auto* const embedding = std::get_if<nn::Embedding>(&node.layer); embedding != nullptr)
      if (!recipe.deterministic && network.n_readers(node.parameters[0]) == 1)
        of_tables += embedding->n_rows * embedding->width * sizeof(float);
  return of_tables / n_local + less(arena_bytes, of_tables) / n_all;
}

std::uint64_t copy_bytes(const Recipe& recipe, std::uint64_t owned) {
  return recipe.save_every.value > 0 ? (1 + n_states(recipe)) * owned : 0;
}

void compare_memory(const Recipe& recipe, const MemoryNeed& need, std::uint64_t n_local, int n_ranks,
                    const std::string& host, std::uint64_t available, const runtime::LimitsLeft& limits) {
  const std::string ranks = fmt::format("{} rank{}", n_local, n_local == 1 ? "" : "s");
  const Room rooms[] = {
      {available, need.of_node(n_local), n_local, fmt::format("{} on {}", ranks, host), "it has"},
      {limits.address_space, need.own() + need.shared(n_local), 1, fmt::format("a rank on {}", host),
       "its limit of address space (ulimit -v) leaves"},
      {limits.data, need.own(), 1, fmt::format("a rank on {}", host), "its limit of data (ulimit -d) leaves"}};
  const auto in_proportion = [&](const Recipe&, std::uint64_t at_a_time) {
    return static_cast<std::uint64_t>(static_cast<double>(need.activations) * static_cast<double>(at_a_time) /
                                      static_cast<double>(need.at_a_time));
  };
  for (const Room& room : rooms)
    if (room.needed > room.bytes)
      fail_memory(recipe, need, n_local, n_ranks, room,
                  less(room.bytes, room.needed - room.n_sharing * need.activations) / room.n_sharing, in_proportion);
}

std::uint64_t GpuRoom::of_all() const noexcept { return available - available / 16; }

void compare_device_memory(const Recipe& recipe, const MemoryNeed& need, const GpuRoom& gpu,
                           std::uint64_t least_of_rank, int n_ranks, const std::string& host,
                           const PlanActivations& plan) {
  const Room room{gpu.of_all(), gpu.n_sharing * need.of_device(), gpu.n_sharing,
                  gpu.n_sharing == 1 ? fmt::format("a rank on {}", host)
                                     : fmt::format("{} ranks that share a GPU on {}", gpu.n_sharing, host),
                  "the GPU has, less a sixteenth for its libraries,"};
  if (room.needed > room.bytes)
    fail_memory(recipe, need, gpu.n_sharing, n_ranks, room, less(least_of_rank, need.of_device() - need.activations),
                plan);
}

void compare_shared_room(const MemoryNeed& need, std::uint64_t n_local, const std::string& host,
                         std::uint64_t available) {
  if (n_local == 1 || available >= need.shared(n_local)) return;
  throw core::Error{
      core::ExitCode::system,
      {.what = fmt::format("{} ranks on {} share {} of parameters and gradients, but /dev/shm has {} left", n_local,
                           host, core::format_decimal({need.shared(n_local)}), core::format_decimal({available})),
       .where = "memory",
       .expected = "room for them in /dev/shm",
       .fix =
           "enlarge it (mount -o remount,size=2G /dev/shm; docker run --shm-size 2g), or start fewer ranks per node"}};
}

core::Bytes checkpoint_bytes(const Recipe& recipe, const nn::Network& network) {
  std::uint64_t n_statistics = 0;
  for (const nn::Statistic& statistic : network.statistics()) n_statistics += statistic.n_channels;
  const std::uint64_t n_rows = recipe.has_lanes() ? recipe.lanes : 1;
  return {((1 + n_states(recipe)) * network.n_parameter_elements() + n_rows * n_statistics) * sizeof(float)};
}

MemoryCheck check_memory(const runtime::Communicator& world, const OpenDevice& place, const Recipe& recipe,
                         const nn::Network& network, std::uint64_t most, bool is_of_training) {
  const runtime::Topology& topology = place.topology;
  const runtime::Place& me = topology.places[static_cast<std::size_t>(world.rank())];
  const auto n_local = static_cast<std::uint64_t>(std::ranges::count(topology.places, me.node, &runtime::Place::node));
  const bool has_own_memory = recipe.device.has_own_memory;
  MemoryCheck check;
  std::uint64_t left = 0;
  runtime::LimitsLeft limits;
  runtime::together(world, [&] {
    left = (has_own_memory ? runtime::accelerator()->available() : runtime::available_memory()).value;
    limits = runtime::limits_left();
    check.need = memory_need(*place.device, recipe, network, most, world.n_ranks(), n_local);
    check.need.is_of_training = is_of_training;
  });
  const GpuRoom gpu{has_own_memory ? left : 0, static_cast<std::uint64_t>(place.choice.n_sharing)};
  check.of_gpu = gpu.of_all();
  const std::uint64_t of_rank = gpu.of_rank();
  const std::vector<std::uint64_t> of_ranks = runtime::gather_values(world, std::span{&of_rank, 1});
  const std::uint64_t least_of_rank =
      runtime::broadcast_value(world, of_ranks.empty() ? 0 : *std::ranges::min_element(of_ranks));
  check.misfit = core::complaint_of([&] {
    runtime::together(world, [&] {
      if (has_own_memory)
        return compare_device_memory(recipe, check.need, gpu, least_of_rank, world.n_ranks(), me.host,
                                     activations_planner(*place.device, network, world.n_ranks()));
      compare_memory(recipe, check.need, n_local, world.n_ranks(), me.host,
                     left > 0 ? left : std::numeric_limits<std::uint64_t>::max(), limits);
      check_shared_room(check.need, n_local, me.host);
    });
  });
  return check;
}

}  // namespace lockstep::training
