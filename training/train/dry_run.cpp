#include "training/train/dry_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/print.hpp"
#include "core/temporary.hpp"
#include "parallel/traffic.hpp"
#include "runtime/interrupt.hpp"
#include "runtime/memory.hpp"
#include "runtime/together.hpp"
#include "training/recipe/words.hpp"
#include "training/train/memory.hpp"
#include "training/train/model.hpp"
#include "training/train/setup.hpp"

namespace lockstep::training {
namespace {

/// Memory of this process, from /proc/self/status: "VmRSS:" now, "VmHWM:" at its peak.
std::uint64_t memory_of_process(const std::string& key) {
  std::ifstream file{"/proc/self/status"};
  for (std::string word; file >> word;) {
    std::uint64_t kib = 0;
    if (word == key && file >> kib) return kib * 1024;
  }
  return 0;
}

/// Collective: loads a batch and passes one sample of it through the network. Then everything that is made on first use
/// exists, and almost none of the activations is touched.
void use_first_time(Batches& batches, Learner& learner) {
  batches.begin_epoch(0);
  const data::Batch* const all = batches.next();
  if (all != nullptr) learner.try_out(all->part(0, std::min<std::uint64_t>(all->n, 1)));
}

core::Temporary make_folder() {
  std::error_code ignored;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(ignored);
  constexpr const char* name = "lockstep-dry-run";
  core::remove_leftovers(folder.string(), name);
  return core::make_temporary_folder(folder / name, 0700);
}

/// Collective. The first rank's peak is often during the save of weights. Without room for a temporary file, the
/// forecast omits it.
void save_once(const runtime::Communicator& world, const Learner& learner) {
  const core::Temporary mine = world.rank() == 0 ? make_folder() : core::Temporary{};
  if (!world.any(static_cast<bool>(mine))) return;
  static_cast<void>(core::complaint_of([&] { learner.save(mine.path + "/weights.h5", {}, "--dry-run"); }));
  std::error_code ignored;
  if (mine) std::filesystem::remove_all(mine.path, ignored);
}

/// Pages of shared arenas count once a process has touched them. An owner reads its slice of all gradients. All ranks
/// except the first, which has saved them, still have to read the parameters of others.
std::uint64_t untouched_bytes(std::uint64_t arena_bytes, std::uint64_t n_local, bool has_read_parameters) {
  const std::uint64_t of_others = arena_bytes / n_local * (n_local - 1);
  return of_others + (has_read_parameters ? 0 : of_others);
}

/// How many ids of each sample are looked up in this table.
std::uint64_t ids_of_sample(const nn::Network& network, const std::string& table) {
  const auto found = std::ranges::find(network.parameters(), table, &nn::Parameter::name);
  return find_table(network, static_cast<int>(found - network.parameters().begin())).value().n_ids;
}

/// Makes the plan, without memory and traffic.
DryRun plan_of(const runtime::Communicator& world, const runtime::Topology& topology, const Recipe& recipe,
               const nn::Network& network, const Batches& batches, const Goal& goal) {
  return {.model = recipe.model,
          .precision = std::string{word_of(recipe.precision)},
          .strategy = recipe.strategy,
          .n_ranks = static_cast<std::uint64_t>(world.n_ranks()),
          .n_nodes = static_cast<std::uint64_t>(topology.n_nodes),
          .n_parameters = network.n_parameter_elements(),
          .n_multiply_adds = network.n_multiply_adds(),
          .n_epoch_steps = batches.n_batches(),
          .n_steps = goal.n_steps,
          .n_samples = goal.n_samples,
          .most_samples_of_rank = batches.most(),
          .read_bytes = batches.info().stored_bytes};
}

/// Collective.
DryRun plan_on_gpus(const runtime::Communicator& world, const OpenDevice& place, const Recipe& recipe,
                    const Setup& setup) {
  const Batches& batches = *setup.batches.training;
  const MemoryCheck& memory = *setup.memory;
  DryRun plan = plan_of(world, place.topology, recipe, make_network(recipe, batches.info()), batches, setup.goal);
  plan.device = to_text(place.choice);
  plan.activation_bytes = memory.need.activations;
  plan.arena_bytes = memory.need.arena;
  plan.memory_bytes = memory.need.of_device();
  plan.of_gpu = {
      .room = memory.of_gpu, .n_sharing = static_cast<std::uint64_t>(place.choice.n_sharing), .fits = !memory.misfit};
  const std::array mine{plan.memory_bytes, plan.of_gpu->room, plan.of_gpu->n_sharing};
  for (const auto& [bytes, room, n_sharing] : runtime::gather_values(world, std::span{&mine, 1})) {
    plan.memory_bytes = std::max(plan.memory_bytes, bytes);
    if (room / n_sharing < plan.of_gpu->room / plan.of_gpu->n_sharing)
      plan.of_gpu->room = room, plan.of_gpu->n_sharing = n_sharing;
  }
  return plan;
}

std::string memory_text(const DryRun& plan) {
  const auto text = [](std::uint64_t bytes) { return core::format_decimal({bytes}); };
  const std::string need =
      fmt::format("{} of {} memory per rank, including {} for activations", text(plan.memory_bytes),
                  plan.of_gpu ? "GPU" : "host", text(plan.activation_bytes));
  if (!plan.of_gpu) return need;
  const auto [room, n_sharing, fits] = *plan.of_gpu;
  return fmt::format("{}; it {}: {} are left{}", need, fits ? "fits" : "does not fit", text(room),
                     n_sharing > 1 ? fmt::format(" for {} ranks", n_sharing) : "");
}

std::string traffic_text(const DryRun& plan) {
  if (plan.of_gpu)
    return fmt::format("{} of gradients per rank and step, summed over all ranks",
                       core::format_decimal({plan.n_ranks > 1 ? plan.arena_bytes : 0}));
  return fmt::format("{} per step between nodes, {} through shared memory, all ranks together",
                     core::format_decimal({plan.network_bytes}), core::format_decimal({plan.shared_bytes}));
}

}  // namespace

std::uint64_t network_bytes(const Recipe& recipe, const nn::Network& network, const parallel::Sharding& sharding,
                            std::vector<int> nodes) {
  std::vector<std::uint64_t> rows_touched;
  for (const parallel::Slot& slot : sharding.slots())
    rows_touched.push_back(slot.row_elements > 0 ? recipe.batch * ids_of_sample(network, slot.name) : 0);
  return parallel::count_traffic(sharding, {.nodes = std::move(nodes),
                                            .is_deterministic = recipe.deterministic,
                                            .clips = recipe.clip_norm > 0,
                                            .has_norms = optim::needs_norms(recipe.optimizer.kind),
                                            .rows_touched = std::move(rows_touched)})
      .bytes;
}

DryRun plan_run(const runtime::Communicator& world, const runtime::Topology& topology, nn::Device& device,
                const Recipe& recipe, Batches& batches, Learner& learner, const Goal& goal) {
  const auto& me = topology.places[static_cast<std::size_t>(world.rank())];
  const auto n_local = static_cast<std::uint64_t>(
      std::ranges::count(topology.places, me.node, [](const runtime::Place& place) { return place.node; }));
  DryRun plan = plan_of(world, topology, recipe, learner.network(), batches, goal);
  plan.activation_bytes = learner.executor().n_bytes();
  plan.arena_bytes = learner.executor().arena_elements() * sizeof(float);
  std::vector<int> nodes;
  for (const runtime::Place& place : topology.places) nodes.push_back(place.node);
  plan.network_bytes = network_bytes(recipe, learner.network(), learner.synchronizer().sharding(), std::move(nodes));
  plan.shared_bytes = plan.arena_bytes * (plan.n_ranks - plan.n_nodes);
  if (batches.most() > whole_groups(recipe, most_tried))  // the learner is made for these
    plan.activation_bytes =
        memory_need(device, recipe, learner.network(), batches.most(), world.n_ranks(), n_local).activations;
  // Does not try what cannot run on this machine.
  const std::uint64_t left = runtime::available_memory().value;
  const bool is_too_large = world.any(left > 0 && plan.activation_bytes > left / n_local);
  if (!is_too_large) use_first_time(batches, learner);
  save_once(world, learner);
  const std::uint64_t of_batch =
      is_too_large ? batches.most() * nn::n_elements(batches.info().input) * sizeof(float) : 0;
  const std::uint64_t mine =
      copy_bytes(recipe, owned_bytes(recipe, learner.network(), plan.arena_bytes, world.n_ranks(), n_local)) +
      std::max(memory_of_process("VmHWM:"), memory_of_process("VmRSS:") + plan.activation_bytes + of_batch +
                                                untouched_bytes(plan.arena_bytes, n_local, world.rank() == 0));
  for (const std::uint64_t bytes : runtime::gather_values(world, std::span{&mine, 1}))
    plan.memory_bytes = std::max(plan.memory_bytes, bytes);
  return plan;
}

int describe_on_gpus(const runtime::Session& session, const OpenDevice& place, const ResolvedRecipe& resolved,
                     const RunOptions& options, runtime::Watchdog& watchdog) {
  const runtime::Communicator& world = session.world();
  metrics::PhaseTimers timers;
  int signal = 0;
  const auto complaint = core::complaint_of([&] {
    const Setup setup = set_up(world, place, resolved, options, timers, [&] { watchdog.beat(); });
    const DryRun plan = plan_on_gpus(world, place, resolved.recipe, setup);
    signal = runtime::agree_on_interrupt(world);
    runtime::together(world, [&] {
      if (world.rank() != 0 || signal != 0) return;
      for (const std::string& warning : setup.warnings) core::log_warning(warning);
      core::print(dry_run_text(plan));
    });
    if (setup.memory->misfit && signal == 0) throw core::Error{*setup.memory->misfit};
  });
  if (const auto bad = session.agree(complaint)) return core::to_int(*bad);
  return signal != 0 ? 128 + signal : core::to_int(core::ExitCode::ok);
}

std::string dry_run_text(const DryRun& plan) {
  return fmt::format(
      "dry run     {} rank{} on {} node{}; nothing was trained, and nothing is left behind\n"
      "model       {}, {}\n"
      "{}"
      "parameters  {} ({} in float32, as much for gradients)\n"
      "strategy    {}: {}\n"
      "work        {} million multiply-adds per sample, forward\n"
      "steps       {} per epoch, {} in all, each with at most {} samples per rank; {} samples in all\n"
      "memory      {}\n"
      "traffic     {}\n"
      "reading     {} per epoch, all ranks together\n",
      plan.n_ranks, plan.n_ranks == 1 ? "" : "s", plan.n_nodes, plan.n_nodes == 1 ? "" : "s", plan.model,
      plan.precision, plan.device.empty() ? "" : fmt::format("device      {}\n", plan.device), plan.n_parameters,
      core::format_decimal({plan.n_parameters * sizeof(float)}), name(plan.strategy),
      parallel::what_is_kept(plan.strategy, plan.of_gpu.has_value()),
      core::format_number(1e-6 * static_cast<double>(plan.n_multiply_adds), 4), plan.n_epoch_steps, plan.n_steps,
      plan.most_samples_of_rank, plan.n_samples, memory_text(plan), traffic_text(plan),
      core::format_decimal({plan.read_bytes}));
}

}  // namespace lockstep::training
