// The lifetime of Kokkos in a process: threads for work on whole batches.
// Invariant: at most one per process, ever, because Kokkos cannot be started twice; it changes speed, never a result.
// Used by nn/host/host_device and by tests.
#pragma once

namespace lockstep::nn::host {

class KokkosSession {
 public:
  /// Starts `n_threads` threads, including the calling one; at least 1. Throws core::Error (system) if Kokkos was
  /// started before.
  explicit KokkosSession(int n_threads = 1);
  ~KokkosSession();
  KokkosSession(const KokkosSession&) = delete;
  KokkosSession& operator=(const KokkosSession&) = delete;

  [[nodiscard]] int n_threads() const noexcept;
};

/// Kokkos::initialize without the command line and warnings; start_kokkos.cpp and start_kokkos_3.cpp define it, and the
/// version of Kokkos selects one.
void start_kokkos(int n_threads);

}  // namespace lockstep::nn::host
