// Kokkos::initialize of all versions.
// Invariant: takes nothing from the command line and warns of nothing.
// Used by tensor/session.cpp; defined in start_kokkos.cpp or start_kokkos_3.cpp, whichever fits the version.
#pragma once

namespace lockstep::tensor {

void start_kokkos(int n_threads);

}  // namespace lockstep::tensor
