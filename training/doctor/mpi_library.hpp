// The MPI that this program is built with, as the library describes itself.
// Invariant: pure; an unknown library is `other`, and then nothing is concluded from it.
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
/// Whether the launchers of MPICH can start it.
[[nodiscard]] bool descends_from_mpich(MpiFamily family) noexcept;

/// What carries messages between nodes.
enum class Transport { unknown, ucx, libfabric, sockets };

/// Derived from variables and loaded libraries; `why` is the reason in words. Unknown if the library decides by itself
/// and leaves no trace.
struct Carrier {
  Transport transport = Transport::unknown;
  std::string why{};
};
[[nodiscard]] Carrier find_carrier(const Facts& facts);

}  // namespace lockstep::training::doctor
