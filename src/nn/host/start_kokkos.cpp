#include <Kokkos_Core.hpp>

#include "nn/host/kokkos_session.hpp"

namespace lockstep::nn::host {

void start_kokkos(int n_threads) {
  Kokkos::initialize(Kokkos::InitializationSettings{}.set_num_threads(n_threads).set_disable_warnings(true));
}

}  // namespace lockstep::nn::host
