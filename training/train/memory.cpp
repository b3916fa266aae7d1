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

#include "core/error.hpp"
#include "core/units.hpp"
#include "optim/optimizer.hpp"
#include "runtime/accelerator.hpp"
#include "runtime/together.hpp"
#include "training/recipe/cuts.hpp"
#include "training/recipe/specs.hpp"
#include "training/train/model.hpp"

namespace lockstep::training {
namespace {

/// That a batch consists of.
std::uint64_t group_samples(const Recipe& recipe) { return std::max<std::uint64_t>(1, recipe.bn_group); }

/// The largest batch whose activations fit into `room` of each rank; 0 if not one sample of each does.
std::uint64_t fitting_batch(const MemoryNeed& need, std::uint64_t room, int n_ranks) {
  const double of_sample = static_cast<double>(need.activations) / static_cast<double>(need.at_a_time);
  const auto fitting = static_cast<std::uint64_t>(static_cast<double>(room) / of_sample);
  const auto n = static_cast<std::uint64_t>(n_ranks);
  return std::min(fitting, need.at_a_time) * need.batch / need.at_a_time / n * n;
}

/// The least that is no less than `n` and divides the batch into equal parts of a group at least; 0 if none is found
/// soon.
std::uint64_t dividing_parts(const Recipe& recipe, std::uint64_t n) {
  constexpr std::uint64_t most_tries = 100'000;
  const std::uint64_t end = std::min(recipe.batch / group_samples(recipe), n + most_tries);
  while (n <= end && recipe.batch % n != 0) ++n;
  return n <= end ? n : 0;
}

/// `room`: for the activations of a rank.
std::string remedies(const Recipe& recipe, const MemoryNeed& need, std::uint64_t room, std::uint64_t n_local,
                     int n_ranks) {
  std::string text;
  if (const std::uint64_t batch = fitting_batch(need, room, n_ranks); batch > 0) {
    const std::uint64_t unit = std::lcm(group_samples(recipe), recipe.accumulate);
    if (batch >= unit) text = fmt::format("--batch {} or less", batch / unit * unit);
    const std::uint64_t parts = dividing_parts(recipe, recipe.accumulate * ((need.batch + batch - 1) / batch));
    if (parts > 0)
      text += fmt::format("{}--accumulate {} or more: parts of a batch one after another{}",
                          text.empty() ? "" : ", or ", parts, recipe.has_lanes() ? ", as more --lanes are" : "");
    if (!text.empty()) text += "; ";
  }
  // Devices keep a copy of the parameters in it.
  const bool is_on_host = runtime::is_host_the_device();
  if (recipe.precision == "f32" && (is_on_host || need.activations > 2 * need.arena)) text += "--precision bf16; ";
  if (n_local > 1) text += "fewer ranks on a node; ";
  return text +
         (is_on_host ? "--dry-run tells what a run needs" : "--device host --dry-run tells what it does on a host");
}

struct Room {
  std::uint64_t bytes;  ///< that there are
  std::uint64_t needed;
  std::uint64_t n_sharing;  ///< ranks that share it
  std::string who;
  std::string left;
};

[[noreturn]] void fail_memory(const Recipe& recipe, const MemoryNeed& need, std::uint64_t n_local, int n_ranks,
                              const Room& room) {
  const auto text = [](std::uint64_t bytes) { return core::format_decimal({bytes}); };
  const std::uint64_t rest = room.needed - room.n_sharing * need.activations;
  std::uint64_t for_activations = (room.bytes - std::min(room.bytes, rest)) / room.n_sharing;
  // Of fewer samples they take more than their share: workspaces stay, and more is computed at the same time.
  if (!runtime::is_host_the_device()) for_activations -= for_activations / 4;
  core::fail_usage(
      {.what = fmt::format("{} need{} {}, of it {} for activations, and {} {}", room.who, room.n_sharing > 1 ? "" : "s",
                           text(room.needed), text(room.n_sharing * need.activations), room.left, text(room.bytes)),
       .where = "memory",
       .expected = "room for activations, parameters, gradients and the optimizer's state",
       .fix = remedies(recipe, need, for_activations, n_local, n_ranks)});
}

/// So many samples at a time are planned at most: more take memory in proportion, and plans of groups time in its
/// square.
constexpr std::uint64_t most_planned = 4096;

/// Without timing, which takes memory; what oneDNN has compiled for it is used again.
std::unique_ptr<nn::Executor> executor_for(nn::Device& device, const Recipe& recipe, const nn::Network& network,
                                           std::uint64_t n, int n_ranks) {
  nn::ExecutorOptions options = executor_options(recipe, n);
  options.is_group_of_ranks = ranks_of_group(recipe, n_ranks) > 1;
  options.is_deterministic = true;
  return device.make_executor(network, options);
}

/// Libraries of a GPU take the rest while they compute.
std::uint64_t room_of_gpu(std::uint64_t available) noexcept { return available - available / 16; }

std::uint64_t n_states(const Recipe& recipe) { return optim::Optimizer{optimizer_spec(recipe), {}, 0}.state().size(); }

/// Parameters and gradients, which the ranks of a node share.
void check_shared_room(const MemoryNeed& need, std::uint64_t n_local, const std::string& host) {
  if (n_local == 1) return;
  std::error_code error;
  const std::filesystem::space_info room = std::filesystem::space("/dev/shm", error);
  if (!error && room.capacity > 0) compare_shared_room(need, n_local, host, room.available);
}

/// By this process: libraries of GPUs alone take some hundred MB of it.
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
  core::fail_usage({.what = fmt::format("an address space of {} is less than the libraries of a training take",
                                        core::format_decimal({limit.rlim_cur})),
                    .where = "the limit of this process (ulimit -v)",
                    .expected = fmt::format("at least {}", core::format_decimal({least})),
                    .fix = "raise it: ulimit -v unlimited"});
}

std::uint64_t whole_groups(const Recipe& recipe, std::uint64_t n) noexcept {
  return std::max<std::uint64_t>(1, n / group_samples(recipe)) * group_samples(recipe);
}

MemoryNeed memory_need(nn::Device& device, const Recipe& recipe, const nn::Network& network, std::uint64_t most,
                       int n_ranks, std::uint64_t n_local) {
  MemoryNeed need{.at_a_time = samples_at_a_time(recipe, most, n_ranks),
                  .batch = std::min(recipe.batch, most * static_cast<std::uint64_t>(n_ranks))};
  const std::uint64_t planned = std::min(need.at_a_time, whole_groups(recipe, most_planned));
  const auto executor = executor_for(device, recipe, network, planned, n_ranks);
  need.activations = executor->n_bytes();
  if (const std::uint64_t fewer = whole_groups(recipe, planned / 2); planned < need.at_a_time && fewer < planned) {
    const std::uint64_t of_fewer =
        std::min<std::uint64_t>(need.activations, executor_for(device, recipe, network, fewer, n_ranks)->n_bytes());
    need.activations += (need.activations - of_fewer) / (planned - fewer) * (need.at_a_time - planned);
  }
  need.arena = executor->arena_elements() * sizeof(float);
  const bool is_on_host = runtime::is_host_the_device();
  need.optimizer = n_states(recipe) * need.arena / (is_on_host ? n_local : 1);
  need.copy = copy_bytes(recipe, need.arena, n_local);
  if (recipe.has_lanes())  // sums that wait for their other half: see parallel::Lanes
    need.optimizer +=
        static_cast<std::uint64_t>(std::popcount(recipe.lanes / static_cast<std::uint64_t>(n_ranks) - 1)) * need.arena;
  return need;
}

std::uint64_t copy_bytes(const Recipe& recipe, std::uint64_t arena_bytes, std::uint64_t n_local) {
  return recipe.save_every.value > 0 ? (1 + n_states(recipe)) * arena_bytes / n_local : 0;
}

void compare_memory(const Recipe& recipe, const MemoryNeed& need, std::uint64_t n_local, int n_ranks,
                    const std::string& host, std::uint64_t available, const runtime::LimitsLeft& limits) {
  const std::string ranks = fmt::format("{} rank{}", n_local, n_local == 1 ? "" : "s");
  const Room rooms[] = {
      {available, need.of_node(n_local), n_local, fmt::format("{} on {}", ranks, host), "it has"},
      {limits.address_space, need.own() + need.shared(n_local), 1, fmt::format("a rank on {}", host),
       "its limit of address space (ulimit -v) leaves"},
      {limits.data, need.own(), 1, fmt::format("a rank on {}", host), "its limit of data (ulimit -d) leaves"}};
  for (const Room& room : rooms)
    if (room.needed > room.bytes) fail_memory(recipe, need, n_local, n_ranks, room);
}

void compare_device_memory(const Recipe& recipe, const MemoryNeed& need, std::uint64_t n_sharing, int n_ranks,
                           const std::string& host, std::uint64_t available) {
  const Room room{room_of_gpu(available), n_sharing * need.of_device(), n_sharing,
                  n_sharing == 1 ? fmt::format("a rank on {}", host)
                                 : fmt::format("{} ranks that share a GPU on {}", n_sharing, host),
                  "the GPU has, less a sixteenth for its libraries,"};
  if (room.needed > room.bytes) fail_memory(recipe, need, n_sharing, n_ranks, room);
}

void compare_shared_room(const MemoryNeed& need, std::uint64_t n_local, const std::string& host,
                         std::uint64_t available) {
  if (n_local == 1 || available >= need.shared(n_local)) return;
  throw core::Error{
      core::ExitCode::system,
      {.what = fmt::format("{} ranks on {} share {} of parameters and gradients, and /dev/shm has {} left", n_local,
                           host, core::format_decimal({need.shared(n_local)}), core::format_decimal({available})),
       .where = "memory",
       .expected = "room for them in /dev/shm",
       .fix = "enlarge it (mount -o remount,size=2G /dev/shm; docker run --shm-size 2g), or start fewer "
              "ranks on a node"}};
}

core::Bytes checkpoint_bytes(const Recipe& recipe, const nn::Network& network) {
  std::uint64_t n_statistics = 0;
  for (const nn::Statistic& statistic : network.statistics()) n_statistics += statistic.n_channels;
  const std::uint64_t n_rows = recipe.has_lanes() ? recipe.lanes : 1;
  return {((1 + n_states(recipe)) * network.n_parameter_elements() + n_rows * n_statistics) * sizeof(float)};
}

MemoryCheck check_memory(const runtime::Communicator& world, const OpenDevice& place, const Recipe& recipe,
                         const nn::Network& network, std::uint64_t most) {
  const runtime::Topology& topology = place.topology;
  const runtime::Place& me = topology.places[static_cast<std::size_t>(world.rank())];
  const auto n_local = static_cast<std::uint64_t>(std::ranges::count(topology.places, me.node, &runtime::Place::node));
  const auto n_sharing = static_cast<std::uint64_t>(place.choice.n_sharing);
  const bool is_on_host = runtime::is_host_the_device();
  MemoryCheck check;
  std::uint64_t left = 0;
  runtime::LimitsLeft limits;
  runtime::together(world, [&] {
    left = is_on_host ? runtime::available_memory().value : runtime::accelerator()->available().value;
    limits = runtime::limits_left();
    check.need = memory_need(*place.device, recipe, network, most, world.n_ranks(), n_local);
  });
  if (!is_on_host) check.of_gpu = room_of_gpu(left);
  check.misfit = core::complaint_of([&] {
    runtime::together(world, [&] {
      if (!is_on_host) return compare_device_memory(recipe, check.need, n_sharing, world.n_ranks(), me.host, left);
      compare_memory(recipe, check.need, n_local, world.n_ranks(), me.host,
                     left > 0 ? left : std::numeric_limits<std::uint64_t>::max(), limits);
      check_shared_room(check.need, n_local, me.host);
    });
  });
  return check;
}

}  // namespace lockstep::training
