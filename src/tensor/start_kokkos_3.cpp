#include <Kokkos_Core.hpp>

#include "tensor/start_kokkos.hpp"

namespace lockstep::tensor {

void start_kokkos(int n_threads) {
  Kokkos::InitArguments arguments;
  arguments.num_threads = n_threads;
  arguments.disable_warnings = true;
  Kokkos::initialize(arguments);
}

}  // namespace lockstep::tensor
