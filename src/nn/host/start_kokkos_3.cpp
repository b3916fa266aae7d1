#include <Kokkos_Core.hpp>

#include "nn/host/kokkos_session.hpp"

namespace lockstep::nn::host {

void start_kokkos(int n_threads) {
  Kokkos::InitArguments arguments;
  arguments.num_threads = n_threads;
  arguments.disable_warnings = true;
  Kokkos::initialize(arguments);
}

}  // namespace lockstep::nn::host
