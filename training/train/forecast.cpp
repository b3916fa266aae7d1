#include "training/train/forecast.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <span>
#include <string>

#include "training/train/dry_run.hpp"

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

/// Pages of shared memory count once a process has touched them. An owner reads its slice of all gradients. All ranks
/// except one that has saved them still have to read the parameters of others.
std::uint64_t untouched_bytes(const MemoryNeed& need, std::uint64_t n_local, bool has_read_parameters) {
  return ((has_read_parameters ? 0 : need.parameters) + need.gradients) / n_local * (n_local - 1);
}

}  // namespace

MemoryNeed need_of_learner(const Recipe& recipe, Learner& learner, int n_ranks, std::uint64_t n_local) {
  return with_strategy({.activations = learner.executor().n_bytes(),
                        .arena = learner.executor().arena_elements() * sizeof(float),
                        .weights = learner.executor().weights_bytes(),
                        .kept = count_kept_of(recipe, learner.network(), learner.executor())},
                       recipe, n_ranks, n_local);
}

std::uint64_t forecast_peak(const MemoryNeed& need, std::uint64_t n_local, std::uint64_t of_batch, bool has_saved) {
  return need.copy + std::max(memory_of_process("VmHWM:"), memory_of_process("VmRSS:") + need.activations + of_batch +
                                                               untouched_bytes(need, n_local, has_saved));
}

UseRecord forecast_use(const runtime::Communicator& world, const std::vector<int>& nodes, const Recipe& recipe,
                       const Batches& batches, Learner& learner) {
  const auto n_local =
      static_cast<std::uint64_t>(std::ranges::count(nodes, nodes[static_cast<std::size_t>(world.rank())]));
  const MemoryNeed need = need_of_learner(recipe, learner, world.n_ranks(), n_local);
  UseRecord use{.states = core::Bytes{need.states}, .pool = core::Bytes{need.pool}};
  if (recipe.device.has_own_memory) {
    use.peak = core::Bytes{need.of_device()};
    return use;
  }
  const parallel::Sharding& sharding = learner.synchronizer().sharding();
  const comm::Cost traffic =
      network_traffic(recipe, learner.network(), sharding, nodes, learner.executor().unit_reads());
  use.sent_bytes = static_cast<double>(traffic.bytes);
  use.n_messages = static_cast<double>(traffic.messages);
  const auto node = nodes.begin() + world.rank();
  const bool is_first_of_node = std::find(nodes.begin(), node, *node) == node;  // it has zeroed all parameters
  const std::uint64_t of_batch = batches.most() * nn::n_elements(batches.info().input) * sizeof(float);
  const std::uint64_t mine = forecast_peak(need, n_local, of_batch, is_first_of_node);
  std::uint64_t most = 0;
  for (const std::uint64_t bytes : runtime::gather_values(world, std::span{&mine, 1})) most = std::max(most, bytes);
  use.peak = core::Bytes{most};
  return use;
}

UseRecord measure_use(const runtime::Communicator& world, const Recipe& recipe, Learner& learner, core::Bytes peak,
                      core::Seconds communication) {
  UseRecord use{};
  const auto& [sent, n_steps] = learner.sent_in_steps();
  const double per_step = n_steps > 0 ? 1 / static_cast<double>(n_steps) : 0;
  if (n_steps > 0) use.communication = core::Seconds{communication.value * per_step};
  if (recipe.device.has_own_memory) return use;  // libraries tell neither what they keep nor what they send
  use.peak = peak;
  const parallel::KeptBytes kept = learner.synchronizer().kept();
  const std::array mine{kept.states, sent.bytes, sent.messages};
  std::array<std::uint64_t, 3> all{};
  for (const auto& [states, n_bytes, n_messages] : runtime::gather_values(world, std::span{&mine, 1}))
    all = {std::max(all[0], states), all[1] + n_bytes, all[2] + n_messages};
  use.states = core::Bytes{all[0]};
  use.pool = core::Bytes{kept.pool};
  if (n_steps == 0) return use;
  use.sent_bytes = static_cast<double>(all[1]) * per_step;
  use.n_messages = static_cast<double>(all[2]) * per_step;
  return use;
}

}  // namespace lockstep::training
