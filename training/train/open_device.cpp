#include "training/train/open_device.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "core/flags.hpp"
#include "runtime/together.hpp"

namespace lockstep::training {

runtime::DeviceChoice choose_training_device(const runtime::Communicator& world, const runtime::Topology& topology,
                                             const runtime::DeviceRequest& request) {
  runtime::DeviceChoice choice = runtime::choose_device(world, topology, request);
  const std::string_view lacking = nn::lacking_for_acceleration();
  if (request.kind != runtime::DeviceKind::automatic || choice.is_host() || lacking.empty()) return choice;
  return {.why_not = std::string{lacking}};
}

std::unique_ptr<nn::Device> open_accelerator(const runtime::DeviceChoice& choice, int n_threads, bool tunes) {
  return choice.is_host() ? nullptr : nn::open_accelerated_device(n_threads, tunes);
}

std::unique_ptr<OpenDevice> open_device(const runtime::Communicator& world, const runtime::DeviceRequest& request,
                                        int n_threads, bool tunes) {
  auto open = std::make_unique<OpenDevice>();
  open->topology = runtime::discover_topology(world);
  open->choice = choose_training_device(world, open->topology, request);
  runtime::together(world, [&] {
    open->use.emplace(open->choice);
    open->device = open_accelerator(open->choice, n_threads, tunes);
    if (!open->device) open->device = nn::open_device(n_threads);
  });
  return open;
}

void settle(Recipe& recipe, const runtime::DeviceChoice& choice) {
  recipe.device = runtime::traits_of(choice);
  if (recipe.precision == nn::Precision::bf16 && !recipe.device.has_bf16)
    core::fail_usage({.what = "a GPU of this run does not multiply matrices in bf16",
                      .where = "precision",
                      .expected = "f16 or f32, or an A100 or newer for every rank",
                      .fix = "--precision auto, or f16"});
  if (recipe.strategy && !parallel::exists_on(recipe.device.has_own_memory, *recipe.strategy))
    core::fail_usage(
        {.what = fmt::format("strategy '{}' is not for GPUs in this version", name(*recipe.strategy)),
         .where = "strategy",
         .expected = fmt::format("on GPUs one of {}", fmt::join(core::names_of(parallel::strategies_on(true)), ", ")),
         .fix = "leave it out, or --device host"});
  const nn::Precision of_16_bits = recipe.device.has_bf16 ? nn::Precision::bf16 : nn::Precision::f16;
  if (!recipe.precision) recipe.precision = recipe.device.has_f16 ? of_16_bits : nn::Precision::f32;
}

std::string to_text(const runtime::DeviceChoice& choice) {
  if (choice.is_host()) return choice.why_not.empty() ? "" : fmt::format("host: {}", choice.why_not);
  const std::size_t n_gpus = std::set<std::string>{choice.all.begin(), choice.all.end()}.size();
  if (n_gpus == 1) return fmt::format("{}{}", choice.gpu.name, choice.is_shared ? ", shared by all ranks" : "");
  return fmt::format("{} GPUs{}, such as {}", n_gpus, choice.is_shared ? " shared by ranks" : "", choice.gpu.name);
}

}  // namespace lockstep::training
