#include "training/train/dry_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
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
#include "training/run/profile.hpp"
#include "training/train/assumed_ranks.hpp"
#include "training/train/forecast.hpp"
#include "training/train/memory.hpp"
#include "training/train/model.hpp"
#include "training/train/setup.hpp"

namespace lockstep::training {
namespace {

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
          .strategy = recipe.strategy_or_least(),
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
  plan.gathered_bytes = parallel::divides_states(recipe.strategy_or_least()) && world.n_ranks() > 1
                            ? (memory.need.weights > 0 ? memory.need.weights : memory.need.arena)
                            : 0;
  plan.memory_bytes = memory.need.of_device();
  plan.of_gpu = {
      .room = memory.of_gpu, .n_sharing = static_cast<std::uint64_t>(place.choice.n_sharing), .fits = !memory.misfit};
  const std::array mine{plan.memory_bytes, plan.of_gpu->room, plan.of_gpu->n_sharing};
  for (const auto& [bytes, room, n_sharing] : runtime::gather_values(world, std::span{&mine, 1})) {
    plan.memory_bytes = std::max(plan.memory_bytes, bytes);
    if (room / n_sharing < plan.of_gpu->room / plan.of_gpu->n_sharing)
      plan.of_gpu->room = room, plan.of_gpu->n_sharing = n_sharing;
  }
  plan.strategies = table_of_gpus(recipe, memory.need, world.n_ranks(), plan.memory_bytes);
  return plan;
}

/// Collective: complete on rank 0. On several nodes it measures how fast they send, and compute.
StrategyTable table_on_hosts(comm::Transport& transport, nn::Device& device, const Recipe& recipe, Learner& learner,
                             const MemoryNeed& need, const DryRun& plan) {
  StrategyTable table{.chosen = recipe.strategy_or_least(),
                      .is_one_pass = passes_of_step(recipe, transport.n_ranks()) == 1};
  const parallel::Placement placement = parallel::place(transport.nodes(), recipe.deterministic);
  const auto slots = learner.synchronizer().sharding().slots();
  const auto n_senders = static_cast<std::uint64_t>(placement.n_nodes * placement.n_owners);
  table.rate = measure_link_rate(transport);
  table.rows = rows_of_hosts(recipe, learner.network(), {slots.begin(), slots.end()}, learner.executor().unit_reads(),
                             transport.nodes(), need);
  for (StrategyRow& row : table.rows) {
    row.peak = plan.memory_bytes + row.need.of_rank() - need.of_rank();
    if (table.rate) row.to_send = table.rate->time_of(row.sent_bytes / n_senders);
  }
  if (!table.rate) return table;
  nn::ExecutorOptions options = executor_options(recipe, 1);
  options.agree = [&](std::span<double> times) { transport.communicator().broadcast(std::as_writable_bytes(times)); };
  const double mine = measure_limits(transport.communicator(), device, options).gflops;
  const std::vector<double> all = runtime::gather_values(transport.communicator(), std::span{&mine, 1});
  if (all.empty()) return table;
  table.product_gflops = *std::ranges::min_element(all);
  table.products = {2e-9 * multiply_adds_of_step(learner.network()) * static_cast<double>(plan.most_samples_of_rank) /
                    *table.product_gflops};
  return table;
}

std::string memory_text(const DryRun& plan) {
  const auto text = [](std::uint64_t bytes) { return core::format_decimal({bytes}); };
  const std::string need = fmt::format(
      "{} of {} memory per rank, including {} for activations{}", text(plan.memory_bytes), plan.of_gpu ? "GPU" : "host",
      text(plan.activation_bytes), plan.are_assumed && !plan.of_gpu ? ", without what libraries need" : "");
  if (!plan.of_gpu) return need;
  const auto [room, n_sharing, fits] = *plan.of_gpu;
  return fmt::format("{}; it {}: {} are left{}", need, fits ? "fits" : "does not fit", text(room),
                     n_sharing > 1 ? fmt::format(" for {} ranks", n_sharing) : "");
}

std::string traffic_text(const DryRun& plan) {
  if (plan.of_gpu && plan.gathered_bytes > 0)
    return fmt::format("{} of gradients per rank and step, of which each rank gets the sums of its part; {} gathered",
                       core::format_decimal({plan.arena_bytes}), core::format_decimal({plan.gathered_bytes}));
  if (plan.of_gpu)
    return fmt::format("{} of gradients per rank and step, summed over all ranks",
                       core::format_decimal({plan.n_ranks > 1 ? plan.arena_bytes : 0}));
  return fmt::format("{} per step between nodes, {} through shared memory, all ranks together",
                     core::format_decimal({plan.network_bytes}), core::format_decimal({plan.shared_bytes}));
}

}  // namespace

comm::Cost network_traffic(const Recipe& recipe, const nn::Network& network, const parallel::Sharding& sharding,
                           std::vector<int> nodes, std::vector<core::Slice> unit_reads) {
  const auto n_ranks = static_cast<int>(nodes.size());
  std::vector<std::uint64_t> rows_touched;
  for (const parallel::Slot& slot : sharding.slots())
    rows_touched.push_back(slot.row_elements > 0 ? recipe.batch * ids_of_sample(network, slot.name) : 0);
  return parallel::count_traffic(sharding, {.nodes = std::move(nodes),
                                            .strategy = recipe.strategy_or_least(),
                                            .unit_reads = std::move(unit_reads),
                                            .prefetch = recipe.prefetch,
                                            .n_passes = passes_of_step(recipe, n_ranks),
                                            .is_deterministic = recipe.deterministic,
                                            .clips = recipe.clip_norm > 0,
                                            .has_norms = optim::needs_norms(recipe.optimizer.kind),
                                            .rows_touched = std::move(rows_touched)});
}

std::vector<StrategyRow> rows_of_hosts(const Recipe& recipe, const nn::Network& network,
                                       const std::vector<parallel::Slot>& slots,
                                       const std::vector<core::Slice>& unit_reads, const std::vector<int>& nodes,
                                       const MemoryNeed& need) {
  const auto n_ranks = static_cast<int>(nodes.size());
  const auto n_local = static_cast<std::uint64_t>(std::ranges::count(nodes, nodes[0]));
  const parallel::Placement placement = parallel::place(nodes, recipe.deterministic);
  std::vector<StrategyRow> rows;
  for (const parallel::Strategy strategy : parallel::strategies_on(false)) {
    Recipe other = recipe;
    other.strategy = strategy;
    const parallel::Sharding sharding = parallel::make_sharding(strategy, slots, {}, placement);
    const comm::Cost traffic = network_traffic(other, network, sharding, nodes, unit_reads);
    rows.push_back({.strategy = strategy,
                    .need = with_strategy(need, other, n_ranks, n_local),
                    .sent_bytes = traffic.bytes,
                    .n_messages = traffic.messages});
  }
  return rows;
}

DryRun plan_run(const runtime::Communicator& world, const runtime::Topology& topology, comm::Transport& transport,
                nn::Device& device, const Recipe& recipe, Batches& batches, Learner& learner, const Goal& goal) {
  const auto& me = topology.places[static_cast<std::size_t>(world.rank())];
  const auto n_local = static_cast<std::uint64_t>(
      std::ranges::count(topology.places, me.node, [](const runtime::Place& place) { return place.node; }));
  DryRun plan = plan_of(world, topology, recipe, learner.network(), batches, goal);
  plan.activation_bytes = learner.executor().n_bytes();
  plan.arena_bytes = learner.executor().arena_elements() * sizeof(float);
  plan.network_bytes = network_traffic(recipe, learner.network(), learner.synchronizer().sharding(), transport.nodes(),
                                       learner.executor().unit_reads())
                           .bytes;
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
  MemoryNeed need = need_of_learner(recipe, learner, world.n_ranks(), n_local);
  need.activations = plan.activation_bytes;
  const std::uint64_t mine = forecast_peak(need, n_local, of_batch, world.rank() == 0);
  for (const std::uint64_t bytes : runtime::gather_values(world, std::span{&mine, 1}))
    plan.memory_bytes = std::max(plan.memory_bytes, bytes);
  plan.strategies = table_on_hosts(transport, device, recipe, learner, need, plan);
  return plan;
}

int describe_on_gpus(const runtime::Session& session, const OpenDevice& place, ResolvedRecipe& resolved,
                     const RunOptions& options, runtime::Watchdog& watchdog) {
  const runtime::Communicator& world = session.world();
  metrics::PhaseTimers timers;
  int signal = 0;
  const auto complaint = core::complaint_of([&] {
    const Setup setup = set_up(world, place, resolved, options, timers, [&] { watchdog.beat(); });
    DryRun plan = plan_on_gpus(world, place, resolved.recipe, setup);
    plan.why_strategy = setup.why_strategy;
    if (options.assumed_ranks > 0)
      assume_ranks(plan, *place.device, resolved.recipe, make_network(resolved.recipe, setup.batches.training->info()),
                   *setup.batches.training, options.assumed_ranks);
    signal = runtime::agree_on_interrupt(world);
    runtime::together(world, [&] {
      if (world.rank() != 0 || signal != 0) return;
      for (const std::string& warning : setup.warnings) core::log_warning(warning);
      core::print(dry_run_text(plan));
    });
    if (setup.memory->misfit && signal == 0 && options.assumed_ranks == 0) throw core::Error{*setup.memory->misfit};
  });
  if (const auto bad = session.agree(complaint)) return core::to_int(*bad);
  return signal != 0 ? 128 + signal : core::to_int(core::ExitCode::ok);
}

std::string dry_run_text(const DryRun& plan) {
  return fmt::format(
      "dry run     {} rank{} on {} node{}{}; nothing was trained, and nothing is left behind\n"
      "model       {}, {}\n"
      "{}"
      "parameters  {} ({} in float32, as much for gradients)\n"
      "strategy    {}: {}\n"
      "{}"
      "work        {} million multiply-adds per sample, forward\n"
      "steps       {} per epoch, {} in all, each with at most {} samples per rank; {} samples in all\n"
      "memory      {}\n"
      "traffic     {}\n"
      "reading     {} per epoch, all ranks together\n"
      "\n{}",
      plan.n_ranks, plan.n_ranks == 1 ? "" : "s", plan.n_nodes, plan.n_nodes == 1 ? "" : "s",
      plan.are_assumed ? ", assumed by --expect-ranks" : "", plan.model, plan.precision,
      plan.device.empty() ? "" : fmt::format("device      {}\n", plan.device), plan.n_parameters,
      core::format_decimal({plan.n_parameters * sizeof(float)}), name(plan.strategy),
      parallel::what_is_kept(plan.of_gpu || plan.n_nodes > 1 ? plan.strategy : parallel::on_one_node(plan.strategy),
                             plan.of_gpu.has_value()),
      plan.why_strategy.empty() ? "" : fmt::format("chosen      {}\n", plan.why_strategy),
      core::format_number(1e-6 * static_cast<double>(plan.n_multiply_adds), 4), plan.n_epoch_steps, plan.n_steps,
      plan.most_samples_of_rank, plan.n_samples, memory_text(plan), traffic_text(plan),
      core::format_decimal({plan.read_bytes}), strategies_text(plan.strategies));
}

}  // namespace lockstep::training
