// The fingerprint of a run: what a reader needs to judge or repeat a measurement.
// Invariant: environment variables come from an allow-list; nothing else of the environment is recorded.
// Used by every result file.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/communicator.hpp"

namespace lockstep::runtime {

struct Environment {
  std::string time;      ///< UTC, ISO 8601
  std::string lockstep;  ///< version of this program
  std::string compiler;
  std::string build_type;
  std::string mpi_library;   ///< first line of MPI_Get_library_version
  std::string mpi_standard;  ///< "3.1"
  std::string mpi_thread_level;
  std::string cpu_model;
  std::string instruction_set;  ///< the widest that our own loops use here: "plain", "avx2" or "avx512"
  std::string governor;         ///< frequency governor of processor 0; "unknown" if there is none
  std::string kernel;
  std::string transparent_huge_pages;
  long page_bytes = 0;
  std::vector<std::string> hosts;                              ///< one per node, in node order
  std::vector<std::pair<std::string, std::string>> variables;  ///< allow-listed ones that are set
};

/// Whether the allow-list has this environment variable: settings of MPI, network and batch system, never a secret.
[[nodiscard]] bool is_recordable(std::string_view variable);

/// The MPI library's full description of itself: name, version, and for some libraries the build. Needs no session.
[[nodiscard]] std::string mpi_library_text();

/// Reads this rank's own facts, without hosts, which Topology::hosts() has.
[[nodiscard]] Environment read_environment();
/// Collective: reads each rank's own facts, and at rank 0 the hosts of all ranks.
[[nodiscard]] Environment read_environment(const Communicator& world);

}  // namespace lockstep::runtime
