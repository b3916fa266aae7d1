// Runs a plan of shm, flat or sliced by the number of elements, compiled with the weakened order of this folder: the
// sanitizer must report a race.
#include <string>

#include "comm/publish_order.hpp"
#include "comm/transport_threads.hpp"
#include "support/collective_case.hpp"

using namespace lockstep;

static_assert(comm::publish_order == std::memory_order_relaxed, "this program takes the weakened header");

// usage: comm_weakened ELEMENTS
int main(int, char** argv) {
  const support::CollectiveCase which{
      .algorithm = comm::find_algorithm("shm"),
      .call = {comm::Collective::all_reduce, core::DType::float32, comm::ReduceOp::sum, std::stoul(argv[1])}};
  try {
    comm::run_as_threads({0, 0, 0}, [&](comm::Transport& transport) { support::check(transport, which); });
  } catch (const std::exception&) {
    // A wrong result is also possible; only the report counts.
  }
}
