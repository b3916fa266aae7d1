#include "tensor/session.hpp"

#include <Kokkos_Core.hpp>

#include "core/error.hpp"
#include "tensor/start_kokkos.hpp"

namespace lockstep::tensor {
namespace {

// Kokkos of before 3.7 forgets that it ran.
bool was_started = false;

}  // namespace

Session::Session(int n_threads) {
  core::require(n_threads >= 1, "a tensor session has a thread");
  core::require(!was_started && !Kokkos::is_initialized(), "one tensor session per process");
  start_kokkos(n_threads);
  was_started = true;
}

Session::~Session() { Kokkos::finalize(); }

int Session::n_threads() const noexcept { return Kokkos::DefaultHostExecutionSpace().concurrency(); }

}  // namespace lockstep::tensor
