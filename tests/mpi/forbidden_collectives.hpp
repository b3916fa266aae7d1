// Whether this test program was linked with the file that makes every data collective of MPI abort.
// Invariant: a file pair, forbidden_collectives.cpp / allowed_collectives.cpp, chosen by CMake.
// Used by comm_test.
#pragma once

namespace lockstep::support {

[[nodiscard]] bool mpi_collectives_are_forbidden() noexcept;

}  // namespace lockstep::support
