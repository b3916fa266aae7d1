// Kokkos::initialize for all versions.
// Invariant: ignores the command line and prints no warnings.
// Used by nn/host/kokkos_session.cpp; start_kokkos.cpp and start_kokkos_3.cpp define it, and the version selects one.
#pragma once

namespace lockstep::nn::host {

void start_kokkos(int n_threads);

}  // namespace lockstep::nn::host
