// Kokkos::initialize of all versions.
// Invariant: takes nothing from the command line and warns of nothing.
// Used by nn/host/kokkos_session.cpp; defined in start_kokkos.cpp or start_kokkos_3.cpp, whichever fits the version.
#pragma once

namespace lockstep::nn::host {

void start_kokkos(int n_threads);

}  // namespace lockstep::nn::host
