#include "training/train/setup.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <span>
#include <utility>

#include "comm/device_plan.hpp"
#include "comm/transport.hpp"
#include "runtime/session.hpp"
#include "training/recipe/resume_promise.hpp"
#include "training/recipe/specs.hpp"
#include "training/recipe/words.hpp"
#include "training/train/arena_slots.hpp"
#include "training/train/check_data.hpp"
#include "training/train/choose_strategy.hpp"
#include "training/train/dry_run.hpp"
#include "training/train/memory.hpp"
#include "training/train/model.hpp"

namespace lockstep::training {

int threads_of(const runtime::Communicator& world, const Recipe& recipe) {
  const auto share = static_cast<int>(runtime::spare_cores(world)) + 1;
  if (recipe.threads > 0) return recipe.threads;
  return recipe.deterministic ? 1 : share;
}

namespace {

/// Why plans are not tuned; empty if they are.
std::string_view why_not_tuned(const Recipe& recipe, const RunOptions& options) {
  if (!recipe.device.has_own_memory) return "is on the host";
  if (options.dry_run) return "trains nothing";
  return recipe.deterministic ? "chooses nothing by timing" : "";
}

}  // namespace

Setup set_up(const runtime::Communicator& world, const OpenDevice& place, ResolvedRecipe& resolved,
             const RunOptions& options, metrics::PhaseTimers& timers, const std::function<void()>& on_progress) {
  const Recipe& recipe = resolved.recipe;
  const auto fitting_network = [&](const DataInfo& info) {
    nn::Network network = make_network(recipe, info);
    if (!options.evaluate_only) check_groups(recipe, network, info.n_samples, world.n_ranks());
    check_tables(recipe, network);
    return network;
  };
  std::string why;  // this strategy
  const auto decide_strategy = [&](const nn::Network& network, std::uint64_t most) {
    if (recipe.strategy) return;
    StrategyChoice choice = choose_strategy(world, place, recipe, network, most);
    resolved.recipe.strategy = choice.strategy;
    why = std::move(choice.why);
  };
  const auto require_memory = [&](const nn::Network& network, std::uint64_t most) {
    MemoryCheck check = check_memory(world, place, recipe, network, most, !options.evaluate_only);
    if (check.misfit && !options.dry_run) throw core::Error{*check.misfit};
    return check;
  };
  // The memory of an evaluation is checked when it is used, but a device's own memory at once.
  const bool may_take_less = options.evaluate_only && !recipe.device.has_own_memory;
  const auto fit = [&](const DataInfo& info, std::uint64_t most) {
    const nn::Network network = fitting_network(info);
    decide_strategy(network, most);
    if (!may_take_less && !options.dry_run) require_memory(network, most);
  };
  Recipe to_read = recipe;
  if (options.dry_run) to_read.stage.clear();  // a dry run leaves nothing behind
  Setup setup{.batches = open_batches(world, *place.device, to_read, !options.evaluate_only, fit, on_progress)};
  const Batches* const training = setup.batches.training.get();
  const Batches* const evaluation = setup.batches.evaluation.get();
  if (training != nullptr) {
    check_batches(resolved, *training);
    const std::uint64_t n_epoch = n_epoch_samples(recipe, *training, world.n_ranks());
    setup.goal = goal_of(recipe, n_epoch, training->n_batches());
    setup.save_interval = recipe.save_every.samples(n_epoch);
    if (recipe.save_every.unit == Length::Unit::seconds) setup.save_time = {recipe.save_every.value};
    setup.schedule = schedule_spec(recipe, n_epoch);
    optim::check(setup.schedule);
  }
  check_evaluation(resolved, training, evaluation);
  const Batches& batches = setup.main_batches();
  nn::Network network = fitting_network(batches.info());
  decide_strategy(network, batches.most());
  setup.why_strategy = std::move(why);
  setup.warnings = surprises(resolved, setup.goal, training, evaluation, !options.init_from.empty());
  if (recipe.deterministic && !recipe.device.adds_lanes)
    setup.warnings.push_back(
        "on GPUs a deterministic run has no lanes, and the same bits only on the same number of ranks; --device host "
        "has them on any");
  if (parallel::divides_states(*recipe.strategy) && recipe.device.has_own_memory && world.n_ranks() == 1 &&
      options.assumed_ranks == 0)
    setup.warnings.push_back(
        fmt::format("strategy {} is the same as ddp here: one rank divides nothing", name(*recipe.strategy)));
  const parallel::Strategy same = parallel::on_one_node(*recipe.strategy);
  const bool is_one_node = place.topology.n_nodes == 1 && options.assumed_ranks == 0;
  if (!recipe.device.has_own_memory && is_one_node && same != *recipe.strategy)
    setup.warnings.push_back(
        fmt::format("strategy {} is the same as {} here: the ranks of one node always divide the optimizer's states, "
                    "and share the parameters",
                    name(*recipe.strategy), name(same)));
  if (!recipe.device.has_own_memory && options.device.shares_gpu)
    setup.warnings.push_back("--share-gpu has no effect: this run is on the host");
  if (const auto why_not = why_not_tuned(recipe, options); options.tune && !why_not.empty())
    setup.warnings.push_back(fmt::format("--autotune has no effect: this run {}", why_not));
  const bool is_need_of_anywhere = options.dry_run && !recipe.device.has_own_memory;
  if (!may_take_less && !is_need_of_anywhere) setup.memory = require_memory(network, batches.most());
  if (setup.memory && setup.memory->misfit) return setup;
  setup.transport = comm::make_transport(world, {.topology = &place.topology});
  if (recipe.device.has_own_memory && world.n_ranks() > 1) {
    setup.devices = comm::make_device_group(*setup.transport, place.choice);
    if (const auto lacking = comm::lacking_for_devices(); !lacking.empty())
      setup.warnings.push_back(fmt::format("gradients are summed through the host, because {}", lacking));
    const comm::AllConnections all = comm::gather_connections(world, place.topology, setup.devices->connection());
    setup.networks = all.networks;
    if (!all.warning.empty()) setup.warnings.push_back(all.warning);
  }
  const std::uint64_t most =
      options.dry_run ? std::min(batches.most(), whole_groups(recipe, most_tried)) : batches.most();
  setup.learner = std::make_unique<Learner>(world, *setup.transport, setup.devices.get(), *place.device, recipe,
                                            std::move(network), most, timers, on_progress);
  setup.learner->initialize(options.init_from);
  std::ranges::move(surprises(setup.learner->executor()), std::back_inserter(setup.warnings));
  return setup;
}

StartRecord start_record(const runtime::Communicator& world, const runtime::Topology& topology,
                         const runtime::DeviceChoice& choice, const Recipe& recipe, const Setup& setup,
                         const std::string& folder, const std::optional<ResumeRecord>& resumed) {
  const Batches& batches = *setup.batches.training;
  const Batches* const evaluation = setup.batches.evaluation.get();
  const nn::Executor& executor = setup.learner->executor();
  const parallel::EnqueuedSteps* const steps = setup.learner->synchronizer().enqueued();
  std::string device = to_text(choice);
  if (!setup.networks.empty())
    device += fmt::format(", {} between nodes over {}", comm::device_library, setup.networks);
  const char* const registered = parallel::divides_states(*recipe.strategy) ? "gradients and parameters" : "gradients";
  if (steps != nullptr && steps->is_registered())
    device += fmt::format(", {} registered with {}", registered, comm::device_library);
  StartRecord record{.model = recipe.model,
                     .n_parameters = setup.learner->network().n_parameter_elements(),
                     .precision = std::string{word_of(recipe.precision)},
                     .data = recipe.synthetic ? "synthetic" : recipe.data,
                     .n_samples = batches.info().n_samples,
                     .shape = nn::to_string(batches.info().input),
                     .n_evaluation = evaluation != nullptr ? evaluation->info().n_samples : 0,
                     .n_ranks = static_cast<std::uint64_t>(world.n_ranks()),
                     .n_nodes = topology.n_nodes,
                     .device = std::move(device),
                     .strategy = std::string{name(*recipe.strategy)},
                     .why_strategy = setup.why_strategy,
                     .global_batch = recipe.batch,
                     .memory = {setup.memory ? setup.memory->need.of_device()
                                             : executor.n_bytes() + 2 * executor.arena_elements() * sizeof(float)},
                     .is_device_memory = recipe.device.has_own_memory,
                     .folder = folder,
                     .n_epochs = setup.goal.n_epochs,
                     .n_epoch_steps = batches.n_batches(),
                     .hosts = world.gather(runtime::host_name()),
                     .resumed = resumed,
                     .promise = resume_promise(recipe, world.n_ranks()).text};
  std::map<int, int> n_on_node;
  for (const runtime::Place& place : topology.places) record.local_ranks.push_back(n_on_node[place.node]++);
  const std::uint64_t most = batches.most();
  record.rank_batches = runtime::gather_values(world, std::span{&most, 1});
  return record;
}

}  // namespace lockstep::training
