// Known causes of a crash of this machine's MPI launcher without a useful message, checked before it is started.
// Invariant: one table; each row judges facts alone, so that tests can make them up.
// Used by relaunch.cpp (--nproc) and by lockstep doctor.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace lockstep::runtime {

struct LauncherFacts {
  static constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();

  std::string launcher{};     ///< own_launcher()
  std::string refusal{};      ///< why the system would not execute it; empty if it would
  std::string mpi{};          ///< mpi_library_text()
  std::string host_name{};    ///< the whole
  bool keeps_domain = false;  ///< Open MPI 4 is told to use the whole
  unsigned user = 0;
  bool has_user_entry = true;            ///< in the system's user database
  std::optional<std::string> home{"/"};  ///< HOME
  std::string temporary{};               ///< TMPDIR
  std::uint64_t stack = no_limit;        ///< bytes; soft limits
  std::uint64_t open_files = no_limit;
  std::uint64_t file_size = no_limit;  ///< bytes
};

[[nodiscard]] LauncherFacts read_launcher_facts();

/// "host name of 12 characters, stack 8.4 MB, ...".
[[nodiscard]] std::string describe(const LauncherFacts& facts);

struct LauncherNeed {
  std::string_view name;
  /// Why the launcher cannot start `n_ranks` ranks here; nothing if no cause is known.
  std::optional<core::Error> (*judge)(const LauncherFacts& facts, int n_ranks);
};
[[nodiscard]] std::span<const LauncherNeed> launcher_needs() noexcept;

/// (system) `refusal`: why `launcher` cannot be executed.
[[nodiscard]] core::Error no_launcher(const std::string& launcher, const std::string& refusal);

}  // namespace lockstep::runtime
