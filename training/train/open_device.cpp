#include "training/train/open_device.hpp"

#include <fmt/format.h>

#include <set>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "runtime/together.hpp"

namespace lockstep::training {

runtime::DeviceChoice choose_training_device(const runtime::Communicator& world, const runtime::Topology& topology,
                                             const runtime::DeviceRequest& request) {
  runtime::DeviceChoice choice = runtime::choose_device(world, topology, request);
  const std::string_view lacking = nn::lacking_for_acceleration();
  if (request.kind != runtime::DeviceKind::automatic || choice.is_host() || lacking.empty()) return choice;
  return {.why_not = std::string{lacking}};
}

std::unique_ptr<OpenDevice> open_device(const runtime::Communicator& world, const runtime::DeviceRequest& request,
                                        int n_threads, bool tunes) {
  auto open = std::make_unique<OpenDevice>();
  open->topology = runtime::discover_topology(world);
  open->choice = choose_training_device(world, open->topology, request);
  runtime::together(world, [&] {
    open->use.emplace(open->choice);
    open->device = open->choice.is_host() ? nn::open_device(n_threads) : nn::open_accelerated_device(n_threads, tunes);
  });
  return open;
}

void settle(Recipe& recipe, const runtime::DeviceChoice& choice) {
  recipe.is_on_device = !choice.is_host();
  if (recipe.precision == nn::Precision::bf16 && !choice.is_host() && !choice.all_have_bf16)
    core::fail_usage({.what = "a GPU of this run does not multiply matrices in bf16",
                      .where = "precision",
                      .expected = "f16 or f32, or an A100 or newer for every rank",
                      .fix = "--precision auto, or f16"});
  const nn::Precision of_gpus = choice.all_have_bf16 ? nn::Precision::bf16 : nn::Precision::f16;
  if (!recipe.precision) recipe.precision = choice.is_host() ? nn::Precision::f32 : of_gpus;
}

std::string to_text(const runtime::DeviceChoice& choice) {
  if (choice.is_host()) return choice.why_not.empty() ? "" : fmt::format("host: {}", choice.why_not);
  const std::size_t n_gpus = std::set<std::string>{choice.all.begin(), choice.all.end()}.size();
  if (n_gpus == 1) return fmt::format("{}{}", choice.gpu.name, choice.is_shared ? ", shared by all ranks" : "");
  return fmt::format("{} GPUs{}, such as {}", n_gpus, choice.is_shared ? " shared by ranks" : "", choice.gpu.name);
}

}  // namespace lockstep::training
