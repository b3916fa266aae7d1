#include "nn/host/kokkos_session.hpp"

#include <Kokkos_Core.hpp>
#include <algorithm>

#include "core/error.hpp"
#include "nn/host/parallel.hpp"
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

void run_parts(std::size_t n, std::size_t least, const PartFunction& part) {
  using Host = Kokkos::DefaultHostExecutionSpace;
  const auto n_threads = static_cast<std::size_t>(Host().concurrency());
  const std::size_t n_parts = std::min(n_threads, n / std::max<std::size_t>(least, 1));
  if (n_parts <= 1) {
    if (n > 0) part(0, n);
    return;
  }
  // Long parts end at cache lines, so that no two threads write to the same one.
  constexpr std::size_t line = 64;
  const std::size_t even = (n + n_parts - 1) / n_parts;
  const std::size_t length = even > 64 * line ? (even + line - 1) / line * line : even;
  const std::size_t n_full = (n + length - 1) / length;
  Kokkos::parallel_for(Kokkos::RangePolicy<Host>(0, n_full),
                       [&](std::size_t i) { part(i * length, std::min(n, (i + 1) * length)); });
  Kokkos::fence();
}

}  // namespace lockstep::nn::host
