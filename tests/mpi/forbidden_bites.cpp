// Shows that forbidden_collectives.cpp works: algorithm mpi must end this program, which exits with 0 only if it does
// not.
#include <vector>

#include "comm/registry.hpp"
#include "comm/transport.hpp"
#include "runtime/session.hpp"

int main() {
  using namespace lockstep;
  const runtime::Session session;
  const auto over = comm::make_transport(session.world(), {});
  const comm::Call call{comm::Collective::all_reduce, core::DType::float32, comm::ReduceOp::sum, 8};
  std::vector<float> data(call.n_elements);
  const auto plan = comm::make_plan(*comm::find_algorithm("mpi"), *over, call);
  plan->bind(std::as_bytes(std::span{data}), std::as_writable_bytes(std::span{data}));
  plan->run();
}
