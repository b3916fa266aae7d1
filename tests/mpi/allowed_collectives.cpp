#include "mpi/forbidden_collectives.hpp"

namespace lockstep::support {

bool mpi_collectives_are_forbidden() noexcept { return false; }

}  // namespace lockstep::support
