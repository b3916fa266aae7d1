#include "training/train/open_device.hpp"

#include <fmt/format.h>

#include <set>

#include "runtime/together.hpp"

namespace lockstep::training {

std::unique_ptr<OpenDevice> open_device(const runtime::Communicator& world, const runtime::DeviceRequest& request,
                                        int n_threads, bool tunes) {
  auto open = std::make_unique<OpenDevice>();
  open->topology = runtime::discover_topology(world);
  open->choice = runtime::choose_device(world, open->topology, request);
  runtime::together(world, [&] {
    open->use.emplace(open->choice);
    open->device = open->choice.is_host() ? nn::open_device(n_threads) : nn::open_accelerated_device(n_threads, tunes);
  });
  return open;
}

std::string to_text(const runtime::DeviceChoice& choice) {
  if (choice.is_host()) return choice.why_not.empty() ? "" : fmt::format("host: {}", choice.why_not);
  const std::size_t n_gpus = std::set<std::string>{choice.all.begin(), choice.all.end()}.size();
  if (n_gpus == 1) return fmt::format("{}{}", choice.gpu.name, choice.is_shared ? ", shared by all ranks" : "");
  return fmt::format("{} GPUs{}, such as {}", n_gpus, choice.is_shared ? " shared by ranks" : "", choice.gpu.name);
}

}  // namespace lockstep::training
