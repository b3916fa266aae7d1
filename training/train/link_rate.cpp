#include "training/train/link_rate.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "comm/registry.hpp"
#include "core/clock.hpp"
#include "core/units.hpp"
#include "parallel/sharding.hpp"
#include "runtime/communicator.hpp"

namespace lockstep::training {
namespace {

constexpr std::uint64_t measured_bytes = std::uint64_t{4} << 20;
constexpr int n_measured = 3;

}  // namespace

std::optional<LinkRate> measure_link_rate(comm::Transport& world) {
  const parallel::Placement placement = parallel::place(world.nodes(), false);
  if (placement.n_nodes == 1) return std::nullopt;
  const int node_index = placement.nodes[static_cast<std::size_t>(world.rank())];
  const std::unique_ptr<comm::Transport> node = world.split(node_index, world.rank());
  const std::unique_ptr<comm::Transport> between = world.split(node->rank(), node_index);
  const comm::Call call{.n_elements = measured_bytes / sizeof(float)};
  const std::unique_ptr<comm::Plan> plan = comm::make_plan(*between, call);
  std::vector<float> values(call.n_elements);
  plan->bind(std::as_bytes(std::span{values}), std::as_writable_bytes(std::span{values}));
  double best_s = std::numeric_limits<double>::infinity();
  for (int trial = 0; trial <= n_measured; ++trial) {
    world.communicator().barrier();
    const core::Timer since{core::real_clock()};
    if (node->rank() < placement.n_owners) plan->run();
    const double mine = since.elapsed().value;
    double slowest = 0;
    for (const double seconds : runtime::gather_values(world.communicator(), std::span{&mine, 1}))
      slowest = std::max(slowest, seconds);
    if (trial > 0) best_s = std::min(best_s, slowest);  // the first makes connections
  }
  const auto n_nodes = static_cast<std::uint64_t>(placement.n_nodes);
  const std::vector<int> owners = comm::one_rank_each(placement.n_nodes);
  const comm::Cost cost = comm::choose(call, owners).algorithm->implementation(call.collective).cost(call, owners);
  const double rate = core::gigabytes_per_second({cost.bytes / n_nodes}, {best_s});
  return LinkRate{.GBps = runtime::broadcast_value(world.communicator(), rate), .message_bytes = measured_bytes};
}

}  // namespace lockstep::training
