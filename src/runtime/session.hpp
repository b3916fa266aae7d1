// The lifetime of MPI in a process: initialise, agree on errors, end in order, or abort with a message.
// Invariant: MPI_THREAD_SINGLE, although the standard wants FUNNELED if helper threads exist: they never call MPI, and
// FUNNELED slows down short messages measurably.
// Used by the programs' main(), by the MPI tests, and by tests that run a program's ranks as threads.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "runtime/communicator.hpp"

namespace lockstep::runtime {

/// Whether a process without a launcher still needs MPI. Without MPI, the process starts at once, listens on no network
/// and waits for nobody.
enum class Alone { with_mpi, without_mpi };

/// The ranks of a job, and how they agree on errors: holds MPI, if it is needed, from construction to destruction.
class Session {
 public:
  /// Collective over all processes of the job. One per process.
  explicit Session(Alone alone = Alone::with_mpi);
  /// Collective: for ranks that exist without MPI, such as threads, with a clock that must outlive it.
  explicit Session(const Communicator& world, const core::Clock& clock = core::real_clock());
  /// Collective; logs instead of throwing.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] const Communicator& world() const noexcept { return *world_; }
  /// The clock of limits, intervals and progress messages.
  [[nodiscard]] const core::Clock& clock() const noexcept { return *clock_; }

  /// Collective: if any rank passes an error, the lowest such rank prints it once to stderr and the code is returned to
  /// all. If other ranks do not arrive within 10 s, because they wait elsewhere for this rank, a rank that passes an
  /// error ends the job with it.
  [[nodiscard]] std::optional<core::ExitCode> agree(const std::optional<core::Error>& mine) const;

 private:
  bool has_mpi_;
  const core::Clock* clock_ = &core::real_clock();
  std::unique_ptr<Communicator> world_;
  std::unique_ptr<Communicator> meeting_;  ///< separate, so that the leftovers of a rank that came alone disturb nobody
};

/// Returns the exception that is being handled; converts one other than core::Error to ExitCode::system.
[[nodiscard]] core::Error current_error();

/// Prints rank, host, phase and the error, then ends the whole job by MPI_Abort with the error's exit code. For errors
/// thrown while other ranks may be inside a collective: if one rank left silently, the others would hang. `may_speak`:
/// false if another rank of the node has reported the same; that rank then has to end the job.
[[noreturn]] void abort_job(const core::Error& error, std::string_view phase, bool may_speak = true);

/// Host name without domain.
[[nodiscard]] std::string host_name();

}  // namespace lockstep::runtime
