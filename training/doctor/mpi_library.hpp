// Which MPI this program is built with, by what the library says of itself.
// Invariant: pure; a library that nobody has heard of is `other`, and then nothing is concluded from it.
// Used by the checks of launcher and fabric.
#pragma once

#include <string>
#include <string_view>

#include "training/doctor/facts.hpp"

namespace lockstep::training::doctor {

enum class MpiFamily { open_mpi, mpich, cray_mpich, intel_mpi, mvapich, other };

/// "Open MPI v4.1.4", "MPICH Version: 4.0.2": the first line, as far as it names the version.
[[nodiscard]] std::string name_mpi(std::string_view library);
[[nodiscard]] MpiFamily find_family(std::string_view library) noexcept;
/// Whether it starts by what MPICH's launchers offer.
[[nodiscard]] bool descends_from_mpich(MpiFamily family) noexcept;

/// What carries messages between nodes.
enum class Transport { unknown, ucx, libfabric, sockets };

/// By what is set and what has been loaded; `why` says it in words. Unknown where the library decides by itself and
/// nothing tells how.
struct Carrier {
  Transport transport = Transport::unknown;
  std::string why{};
};
[[nodiscard]] Carrier find_carrier(const Facts& facts);

}  // namespace lockstep::training::doctor
