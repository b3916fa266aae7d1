// In the place of comm/algorithms/mpi_takes_gpus.cpp, where memory of GPUs is made up: $LOCKSTEP_MADE_UP_MPI, if it is
// set, makes any MPI library one that takes it.
#include <cstdlib>

#include "comm/algorithms/algorithms.hpp"

namespace lockstep::comm {

bool mpi_native::takes_gpus() { return std::getenv("LOCKSTEP_MADE_UP_MPI") != nullptr; }

}  // namespace lockstep::comm
