#include "training/train/memory.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <system_error>
#include <utility>

#include "core/error.hpp"
#include "core/suggest.hpp"
#include "core/units.hpp"
#include "data/load/loader.hpp"
#include "optim/optimizer.hpp"
#include "parallel/device_division.hpp"
#include "parallel/synchronizer.hpp"
#include "runtime/accelerator.hpp"
#include "runtime/together.hpp"
#include "training/recipe/cuts.hpp"
#include "training/recipe/specs.hpp"
#include "training/train/arena_slots.hpp"
#include "training/train/model.hpp"

namespace lockstep::training {
namespace {

/// What would fit besides a smaller batch or its parts.
struct Remedies : Fitting {
  std::string strategy{};
  int n_ranks = 0;  ///< 0: unknown
};

std::uint64_t lane_sums(const Recipe& recipe, std::uint64_t arena, int n_ranks) {
  if (!recipe.has_lanes()) return 0;
  return static_cast<std::uint64_t>(std::popcount(recipe.lanes / static_cast<std::uint64_t>(n_ranks) - 1)) * arena;
}

std::string remedies(const Recipe& recipe, const MemoryNeed& need, const Remedies& fitting, std::uint64_t n_local) {
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
  if (!fitting.strategy.empty()) remedies.push_back(fitting.strategy);
  if (fitting.n_ranks > 0)
    remedies.push_back(fmt::format("at least {} ranks, each with as much memory", fitting.n_ranks));
  // In a device's own memory, a 16-bit precision also needs a copy of the parameters.
  const bool has_own_memory = recipe.device.has_own_memory;
  if (recipe.precision == nn::Precision::f32 && (!has_own_memory || need.activations > 2 * need.arena))
    remedies.emplace_back(has_own_memory ? "--precision auto" : "--precision bf16");
  if (n_local > 1) remedies.emplace_back("fewer ranks per node");
  remedies.emplace_back(has_own_memory ? "--device host --dry-run reports the need on a host"
                                       : "--dry-run reports the need of a run");
  return core::join(remedies, "; ");
}

struct Room {
  std::uint64_t bytes;                                        ///< that exist
  std::function<std::uint64_t(const MemoryNeed&)> need_here;  ///< bytes of a need that take room here
  std::uint64_t needed;
  std::uint64_t n_sharing;  ///< ranks that share it
  std::string who;
  std::string left;
};

/// Another strategy that takes less here: the first that fits, or the one that takes least.
std::string find_strategy(const Recipe& recipe, const MemoryNeed& need, std::uint64_t n_local, int n_ranks,
                          const Room& room) {
  const std::uint64_t own = room.need_here(with_strategy(need, recipe, n_ranks, n_local));
  std::uint64_t least = own;
  std::string_view found;
  for (const parallel::Strategy strategy : parallel::strategies_on(recipe.device.has_own_memory)) {
    Recipe other = recipe;
    other.strategy = strategy;
    const std::uint64_t needed = room.need_here(with_strategy(need, other, n_ranks, n_local));
    if (needed < own && needed <= room.bytes) return fmt::format("--strategy {}, with which it fits", name(strategy));
    if (needed < least) least = needed, found = name(strategy);
  }
  return found.empty() ? "" : fmt::format("--strategy {}, which divides more among the ranks", found);
}

/// The least power of two times as many ranks that fits; 0 if there is none. Each rank has fewer samples of the batch.
int find_more_ranks(const Recipe& recipe, const MemoryNeed& need, std::uint64_t n_local, int n_ranks, const Room& room,
                    const PlanActivations& plan) {
  constexpr int most_times = 256;
  for (int n = 2 * n_ranks; n <= most_times * n_ranks; n *= 2) {
    std::uint64_t needed = room.bytes + 1;
    const auto refusal = core::complaint_of([&] {
      check_ranks(recipe, n);
      const std::uint64_t most = data::batch_plan(loader_options(recipe, false, n), need.batch, 0, n).most();
      MemoryNeed other = need;
      other.at_a_time = samples_at_a_time(recipe, most, n);
      other.activations = plan(recipe, other.at_a_time);
      other.lane_sums = lane_sums(recipe, need.arena, n);
      needed = room.need_here(with_strategy(other, recipe, n, n_local));
    });
    if (refusal) return 0;
    if (needed <= room.bytes) return n;
  }
  return 0;
}

[[noreturn]] void fail_memory(const Recipe& recipe, const MemoryNeed& need, std::uint64_t n_local, int n_ranks,
                              const Room& room, std::uint64_t for_activations, const PlanActivations& plan) {
  const auto text = [](std::uint64_t bytes) { return core::format_decimal({bytes}); };
  const TooLarge all{need.activations, need.at_a_time, need.batch, for_activations};
  Remedies found{find_fitting(recipe, all, n_ranks, plan)};
  found.strategy = find_strategy(recipe, need, n_local, n_ranks, room);
  found.n_ranks = find_more_ranks(recipe, need, n_local, n_ranks, room, plan);
  core::fail_usage({.what = fmt::format("{} need{} {}, including {} for activations, but {} {}", room.who,
                                        room.n_sharing > 1 ? "" : "s", text(room.needed),
                                        text(room.n_sharing * need.activations), room.left, text(room.bytes)),
                    .where = "memory",
                    .expected = "room for activations, parameters, gradients and the optimizer's state",
                    .fix = remedies(recipe, need, found, n_local)});
}

std::uint64_t less(std::uint64_t bytes, std::uint64_t others) { return bytes - std::min(bytes, others); }

/// Plans at most this many samples at a time: memory grows in proportion beyond, and the time to plan groups grows with
/// its square.
constexpr std::uint64_t most_planned = 4096;

/// Without timing, which takes memory; reuses code that was compiled for it.
std::unique_ptr<nn::Executor> executor_for(nn::Device& device, const Recipe& recipe, const nn::Network& network,
                                           std::uint64_t n, int n_ranks) {
  nn::ExecutorOptions options = executor_options(recipe, n, n_ranks);
  options.is_group_of_ranks = ranks_of_group(recipe, n_ranks) > 1;
  options.is_deterministic = true;
  return device.make_executor(network, options);
}

struct Planned {
  std::uint64_t activations;
  std::uint64_t arena;
  std::uint64_t weights;
  CountKept kept;
};

Planned plan(nn::Device& device, const Recipe& recipe, const nn::Network& network, std::uint64_t at_a_time,
             int n_ranks) {
  const std::uint64_t n = std::min(at_a_time, whole_groups(recipe, most_planned));
  const auto executor = executor_for(device, recipe, network, n, n_ranks);
  Planned planned{.activations = executor->n_bytes(),
                  .arena = executor->arena_elements() * sizeof(float),
                  .weights = executor->weights_bytes(),
                  .kept = count_kept_of(recipe, network, *executor)};
  if (const std::uint64_t fewer = whole_groups(recipe, n / 2); n < at_a_time && fewer < n) {
    const std::uint64_t of_fewer =
        std::min<std::uint64_t>(planned.activations, executor_for(device, recipe, network, fewer, n_ranks)->n_bytes());
    planned.activations += (planned.activations - of_fewer) / (n - fewer) * (at_a_time - n);
  }
  return planned;
}

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
  need.kept = planned.kept;
  need.lane_sums = lane_sums(recipe, need.arena, n_ranks);
  return with_strategy(std::move(need), recipe, n_ranks, n_local);
}

MemoryNeed with_strategy(MemoryNeed planned, const Recipe& recipe, int n_ranks, std::uint64_t n_local) {
  const parallel::KeptElements kept = planned.kept(recipe, n_ranks, n_local);
  planned.states = n_states(recipe) * kept.updated * sizeof(float);
  planned.parameters = (kept.parameters - kept.pool) * sizeof(float);
  planned.pool = kept.pool * sizeof(float);
  planned.gradients = kept.gradients * sizeof(float);
  planned.parts = kept.parts * sizeof(float);
  // Ranks of devices save equal parts also of what all of them update.
  planned.copy = copy_bytes(recipe, recipe.device.has_own_memory ? planned.arena / static_cast<std::uint64_t>(n_ranks)
                                                                 : kept.updated * sizeof(float));
  return planned;
}

PlanActivations activations_planner(nn::Device& device, const nn::Network& network, int n_ranks) {
  return [&device, &network, n_ranks](const Recipe& recipe, std::uint64_t at_a_time) {
    return plan(device, recipe, network, at_a_time, n_ranks).activations;
  };
}

CountKept count_kept_of(const Recipe& recipe, const nn::Network& network, const nn::Executor& executor) {
  return [slots = slots_of(network, executor, recipe), reads = executor.unit_reads(),
          has_weights = executor.weights_bytes() > 0](const Recipe& of, int n_ranks, std::uint64_t n_local) {
    const parallel::Strategy strategy = of.strategy_or_least();
    if (of.device.has_own_memory)
      return parallel::count_kept({strategy, slots, {}, static_cast<std::size_t>(n_ranks)}, has_weights);
    std::vector<int> nodes(static_cast<std::size_t>(n_ranks));
    for (std::size_t rank = 0; rank < nodes.size(); ++rank) nodes[rank] = static_cast<int>(rank / n_local);
    const parallel::Placement placement = parallel::place(nodes, of.deterministic);
    const parallel::Sharding sharding = parallel::make_sharding(strategy, slots, {}, placement);
    return parallel::count_kept(
        sharding, parallel::plan_host_places(strategy, sharding, parallel::UnitTurns{reads, of.prefetch}, placement,
                                             passes_of_step(of, n_ranks) == 1));
  };
}

std::uint64_t n_states(const Recipe& recipe) { return optim::Optimizer{recipe.optimizer, {}, 0}.state().size(); }

std::uint64_t copy_bytes(const Recipe& recipe, std::uint64_t owned) {
  return recipe.save_every.value > 0 ? (1 + n_states(recipe)) * owned : 0;
}

void compare_memory(const Recipe& recipe, const MemoryNeed& need, std::uint64_t n_local, int n_ranks,
                    const std::string& host, std::uint64_t available, const runtime::LimitsLeft& limits) {
  const std::string ranks = fmt::format("{} rank{}", n_local, n_local == 1 ? "" : "s");
  const auto of_node = [n_local](const MemoryNeed& of) { return of.of_node(n_local); };
  const auto of_process = [n_local](const MemoryNeed& of) { return of.own() + of.shared(n_local); };
  const auto own = [](const MemoryNeed& of) { return of.own(); };
  const std::string a_rank = fmt::format("a rank on {}", host);
  const Room rooms[] = {
      {available, of_node, of_node(need), n_local, fmt::format("{} on {}", ranks, host), "it has"},
      {limits.address_space, of_process, of_process(need), 1, a_rank, "its limit of address space (ulimit -v) leaves"},
      {limits.data, own, own(need), 1, a_rank, "its limit of data (ulimit -d) leaves"}};
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
  const auto of_gpu = [&gpu](const MemoryNeed& of) { return gpu.n_sharing * of.of_device(); };
  const Room room{gpu.of_all(),
                  of_gpu,
                  of_gpu(need),
                  gpu.n_sharing,
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
