// Replaces comm/algorithms/mpi_takes_gpus.cpp for made-up GPU memory: if $LOCKSTEP_MADE_UP_MPI is set, any MPI library
// counts as one that accepts it.
#include <cstdlib>

#include "comm/algorithms/algorithms.hpp"

namespace lockstep::comm {

bool mpi_native::takes_gpus() { return std::getenv("LOCKSTEP_MADE_UP_MPI") != nullptr; }

}  // namespace lockstep::comm
