#include "training/doctor/needs.hpp"

#include <algorithm>
#include <memory>
#include <set>

#include "data/augment/augment.hpp"
#include "data/format/manifest.hpp"
#include "data/load/loader.hpp"
#include "data/synth/synth.hpp"
#include "nn/device.hpp"
#include "nn/graph/models.hpp"
#include "runtime/gpu_choice.hpp"
#include "training/doctor/checks.hpp"
#include "training/recipe/cuts.hpp"
#include "training/recipe/specs.hpp"
#include "training/train/arena_slots.hpp"
#include "training/train/choose_strategy.hpp"
#include "training/train/model.hpp"
#include "training/train/open_device.hpp"

namespace lockstep::training::doctor {
namespace {

[[noreturn]] void fail_ids(const Recipe& recipe) {
  core::fail_usage({.what = "the numbers of users and items are known only after the set has been read",
                    .where = recipe.name,
                    .expected = "both as keys of the recipe",
                    .fix = "run lockstep train --dry-run, which reads the set and reports the need"});
}

DataInfo info_of_set(const Recipe& recipe) {
  const data::Manifest manifest = data::read_manifest(recipe.data);
  const bool is_only = manifest.splits.size() == 1;
  const data::Split& split = manifest.split(is_only ? "" : recipe.train_split, recipe.data);
  return {.spec = manifest.spec, .n_ids = {recipe.users, recipe.items}, .n_samples = split.n_samples};
}

DataInfo info_of_synthetic(const Recipe& recipe) {
  const data::SynthOptions options = synth_options(recipe);
  const std::unique_ptr<data::Source> source = synthesizer_of(recipe).open(options);
  const std::vector<data::SourceSplit> splits = source->splits();
  const auto split = std::ranges::find(splits, recipe.train_split, &data::SourceSplit::name);
  return {.spec = source->spec(),
          .n_ids = {options.users, options.items},
          .n_samples = split == splits.end() ? 0 : split->n_samples};
}

/// The smallest GPU of a node: on rank 0's node with its present free memory, on others with all its memory.
GpuRoom room_on(const Job& job, int node, std::uint64_t left_for_first) {
  std::uint64_t memory = node == job.topology.places.front().node ? left_for_first : unlimited;
  std::set<std::string> gpus;
  for (std::size_t rank = 0; rank < job.ranks.size(); ++rank) {
    if (job.topology.places[rank].node != node) continue;
    for (const SeenGpu& gpu : job.ranks[rank].gpus.seen) {
      gpus.insert(gpu.uuid);
      memory = std::min(memory, gpu.memory);
    }
  }
  return {memory, div_up(job.n_local(static_cast<std::size_t>(node)), gpus.size())};
}

std::map<int, core::Error> misfits_of_gpus(const Job& job, const Need& need, std::uint64_t left_for_first,
                                           const PlanActivations& plan) {
  std::vector<GpuRoom> rooms;
  for (int node = 0; node < job.topology.n_nodes; ++node) rooms.push_back(room_on(job, node, left_for_first));
  const std::uint64_t least_of_rank = std::ranges::min(rooms, {}, &GpuRoom::of_rank).of_rank();
  const std::vector<const Facts*> nodes = job.nodes();
  std::map<int, core::Error> misfits;
  for (int node = 0; node < job.topology.n_nodes; ++node) {
    const auto number = static_cast<std::size_t>(node);
    const auto misfit = core::complaint_of([&] {
      compare_device_memory(need.recipe, *need.of_gpu, rooms[number], least_of_rank, job.n_ranks(), nodes[number]->host,
                            plan);
    });
    if (misfit) misfits.emplace(node, *misfit);
  }
  return misfits;
}

/// Whether all GPUs that ranks see have bf16.
bool have_all_bf16(const Job& job) {
  return std::ranges::all_of(job.ranks, [](const Facts& facts) {
    return std::ranges::all_of(facts.gpus.seen, [](const SeenGpu& gpu) { return gpu.has_bf16; });
  });
}

/// What `auto` means on hosts with what they have left.
parallel::Strategy strategy_on_hosts(const Job& job, const Need& need) {
  std::vector<MemoryPlace> places;
  const std::vector<const Facts*> nodes = job.nodes();
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    const std::uint64_t n_local = job.n_local(node);
    const RankRoom room{.host = nodes[node]->host,
                        .n_local = n_local,
                        .left = nodes[node]->node.memory,
                        .limits = {},
                        .shared_left = nodes[node]->node.shm_free};
    for (MemoryPlace& place : places_of(room, need.recipe, need.memory.at(n_local), job.n_ranks()))
      places.push_back(std::move(place));
  }
  return choose_strategy(parallel::strategies_on(false), places, false).strategy;
}

Need need_of(const Job& job) {
  Need need{.recipe = *job.request.recipe};
  settle(need.recipe, computes_on_gpus(job) ? runtime::DeviceChoice{.number = 0, .all_have_bf16 = have_all_bf16(job)}
                                            : runtime::DeviceChoice{});
  const Recipe& recipe = need.recipe;
  check_ranks(recipe, job.n_ranks());
  DataInfo info = recipe.synthetic ? info_of_synthetic(recipe) : info_of_set(recipe);
  const bool takes_ids = nn::find_model(recipe.model).takes_ids;
  if (takes_ids && std::ranges::count(info.n_ids, 0U) > 0) fail_ids(recipe);
  if (!takes_ids) info.n_ids.clear();
  check_set(recipe, info.spec);
  data::LoaderOptions options = loader_options(recipe, false, job.n_ranks());
  options.augment.dtype = takes_ids ? core::DType::int64 : core::DType::float32;
  std::optional<runtime::UseDevice> use;
  if (recipe.device.has_own_memory) use.emplace(runtime::DeviceChoice{.number = 0});
  const std::unique_ptr<nn::Device> device = use ? nn::open_accelerated_device(1) : nn::open_device(1);
  const data::Augment augment{info.spec, options.augment};
  info.input = augment.output().shape;
  options.most_pixel_channels = device->most_pixel_channels();
  info.are_pixels = data::keeps_pixels(options, augment);
  const nn::Network network = make_network(recipe, info);
  check_groups(recipe, network, info.n_samples, job.n_ranks());
  check_tables(recipe, network);
  need.checkpoint = checkpoint_bytes(recipe, network);
  const std::uint64_t most = data::batch_plan(options, info.n_samples, 0, job.n_ranks()).most();
  if (use) {
    need.of_gpu = memory_need(*device, recipe, network, most, job.n_ranks(), 1);
    need.gpu_misfits = misfits_of_gpus(job, need, runtime::accelerator()->available().value,
                                       activations_planner(*device, network, job.n_ranks()));
    return need;
  }
  for (int node = 0; node < job.topology.n_nodes; ++node) {
    const std::uint64_t n_local = job.n_local(static_cast<std::size_t>(node));
    if (!need.memory.contains(n_local))
      need.memory[n_local] = memory_need(*device, recipe, network, most, job.n_ranks(), n_local);
  }
  if (recipe.strategy) return need;
  need.recipe.strategy = strategy_on_hosts(job, need);
  for (auto& [n_local, of_node] : need.memory) of_node = with_strategy(of_node, recipe, job.n_ranks(), n_local);
  return need;
}

}  // namespace

void resolve(Request& request) {
  if (request.recipe_word.empty()) return;
  RecipeWords words{.recipe = request.recipe_word};
  if (!request.data.empty())
    words.settings.push_back(
        {.key = "data", .text = request.data, .origin = {Level::command_line, "flag --data", "--data", true}});
  request.recipe = resolve_recipe(words).recipe;
  require_data(*request.recipe);
  request.data = request.recipe->data;
}

void reckon(Job& job) {
  if (!job.ranks.front().node.data.complaint.empty()) return;  // the check of data reports it
  job.misfit = core::complaint_of([&job] { job.need = need_of(job); });
}

}  // namespace lockstep::training::doctor
