// Sums a vector over all ranks by the algorithm that Lockstep chooses.
#include <array>
#include <cstdio>
#include <span>

#include "comm/registry.hpp"
#include "comm/transport.hpp"
#include "runtime/session.hpp"
#include "runtime/topology.hpp"

int main() {
  using namespace lockstep;
  const runtime::Session session;
  const runtime::Communicator& world = session.world();
  const runtime::Topology topology = runtime::discover_topology(world);
  const auto transport = comm::make_transport(world, {.topology = &topology});

  std::array<double, 1000> values;
  values.fill(world.rank() + 1);
  const comm::Call call{.dtype = core::DType::float64, .n_elements = values.size()};
  const comm::Algorithm& algorithm = *comm::choose(call, transport->nodes()).algorithm;
  const auto plan = comm::make_plan(algorithm, *transport, call);
  plan->bind(std::as_bytes(std::span{values}), std::as_writable_bytes(std::span{values}));
  plan->run();

  const double expected = world.n_ranks() * (world.n_ranks() + 1) / 2.0;
  std::printf("rank %d: %g\n", world.rank(), values.back());
  return values.front() == expected && values.back() == expected ? 0 : 1;
}
