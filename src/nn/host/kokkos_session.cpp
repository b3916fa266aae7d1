#include "nn/host/kokkos_session.hpp"

#include <Kokkos_Core.hpp>

#include "core/error.hpp"
#include "nn/host/start_kokkos.hpp"
#include "runtime/interrupt.hpp"

namespace lockstep::nn::host {
namespace {

// Kokkos before 3.7 forgets that it ran.
bool was_started = false;

}  // namespace

KokkosSession::KokkosSession(int n_threads) {
  core::require(n_threads >= 1, "a Kokkos session has at least one thread");
  core::require(!was_started && !Kokkos::is_initialized(), "a process starts Kokkos once");
  const runtime::NoInterrupts for_its_threads;
  start_kokkos(n_threads);
  was_started = true;
}

KokkosSession::~KokkosSession() { Kokkos::finalize(); }

int KokkosSession::n_threads() const noexcept { return Kokkos::DefaultHostExecutionSpace().concurrency(); }

}  // namespace lockstep::nn::host
