#include "runtime/session.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "core/log.hpp"
#include "core/printable.hpp"
#include "core/timer.hpp"
#include "runtime/communicator_mpi.hpp"
#include "runtime/launcher.hpp"
#include "runtime/temporary_folder.hpp"
#include "runtime/together.hpp"
#include "runtime/watch/guard.hpp"

namespace lockstep::runtime {
namespace {

void write_to_stderr(const std::string& message) noexcept {
  const std::string shown = core::printable(message, "\n");
  std::fwrite(shown.data(), 1, shown.size(), stderr);
  std::fflush(stderr);
}

/// Returns when the reader of stderr has read everything, or after a second. A launcher that is told to end a job may
/// stop reading (MPICH 4.0.2 then loses 1 message of 20).
void await_reader_of_stderr() noexcept {
  struct stat what {};
  if (fstat(STDERR_FILENO, &what) != 0 || !S_ISFIFO(what.st_mode)) return;
  const core::Stopwatch watch;
  for (int n_unread = 0; ioctl(STDERR_FILENO, FIONREAD, &n_unread) == 0 && n_unread > 0 && watch.elapsed().value < 1;)
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
}

bool is_mpi_running() noexcept {
  int initialized = 0;
  int finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  return initialized != 0 && finalized == 0;
}

// A single process needs no peers: what Open MPI starts and probes for them takes 0.3 s (4.1.4). Settings of the user
// stay.
void spare_what_others_need() noexcept {
  setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
  setenv("OMPI_MCA_pml", "ob1", 0);
  setenv("OMPI_MCA_btl", "self", 0);  // and does not listen on a network
}

/// While it lives, this thread sleeps longer than requested if ranks share processors. Open MPI checks every 0.1 ms, in
/// every rank, whether MPI has started or ended. That leaves little time to processes that have work, above all its
/// launcher: 256 ranks on 2 processors of a Zen 4 start and end in 14 s instead of 50 (4.1.4).
class RareLooks {
 public:
  RareLooks() noexcept {
    const int n_sharing = n_sharing_a_processor(read_launcher_hint());
    if (n_sharing > 0) prctl(PR_SET_TIMERSLACK, slack_ns_per_rank * n_sharing);
  }
  ~RareLooks() { prctl(PR_SET_TIMERSLACK, 0); }
  RareLooks(const RareLooks&) = delete;
  RareLooks& operator=(const RareLooks&) = delete;

 private:
  static constexpr long slack_ns_per_rank = 100'000;
};

}  // namespace

Session::Session(Alone alone) : has_mpi_{alone == Alone::with_mpi || is_started_by_others()} {
  if (!has_mpi_) {
    world_ = Communicator::alone().duplicate();
    meeting_ = world_->duplicate();
    tell_of_start();
    core::set_log_identity(0, host_name());
    return;
  }
  if (!is_started_by_others()) spare_what_others_need();
  require_temporary_folder();
  // Not FUNNELED, although the watchdog is a thread: it never enters MPI, and Open MPI 4.1.4 takes locks from FUNNELED
  // on (8-byte all-reduce, 2 ranks: 0.36 us instead of 0.24 us).
  int provided = MPI_THREAD_SINGLE;
  {
    const RareLooks looks;
    check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SINGLE, &provided), "MPI_Init_thread");
  }
  tell_of_start();
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  world_ = MpiCommunicator::duplicate_of(MPI_COMM_WORLD);
  meeting_ = MpiCommunicator::duplicate_of(MPI_COMM_WORLD);
  core::set_log_identity(world_->rank(), host_name());
}

Session::Session(const Communicator& world, const core::Clock& clock)
    : has_mpi_{false}, clock_{&clock}, world_{world.duplicate()}, meeting_{world.duplicate()} {}

Session::~Session() {
  meeting_.reset();
  world_.reset();
  if (!has_mpi_) return;
  const RareLooks looks;
  if (MPI_Finalize() != MPI_SUCCESS) core::log_error("MPI_Finalize failed");
}

std::optional<core::ExitCode> Session::agree(const std::optional<core::Error>& mine) const {
  // Ranks speak one after another: the first ends the job.
  const core::Seconds patience{10 + 0.1 * std::min(world_->rank(), 50)};
  if (!meeting_->await_all(mine ? std::optional{patience} : std::nullopt, *clock_)) abort_job(*mine, "an agreement");
  const Speaker speaker = find_speaker(*world_, mine);
  if (speaker.rank < 0) return std::nullopt;
  if (speaker.rank == world_->rank()) core::log_error(mine->what());
  world_->barrier();  // no rank leaves, and makes the launcher end the job, before the message is printed
  return speaker.code;
}

core::Error current_error() {
  try {
    throw;
  } catch (const core::Error& error) {
    return error;
  } catch (const std::exception& error) {
    return {core::ExitCode::system, {.what = error.what()}};
  }
}

void abort_job(const core::Error& error, std::string_view phase, bool may_speak) {
  const bool is_running = is_mpi_running();
  int rank = -1, n_ranks = 1;
  if (is_running) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
  }
  const std::string who = n_ranks > 1 ? fmt::format("rank {} on {}", rank, host_name()) : host_name();
  if (may_speak) {
    write_to_stderr(fmt::format("error: {}, in {}: {}\n", who, phase, error.what()));
    await_reader_of_stderr();
  } else {
    std::this_thread::sleep_for(std::chrono::seconds{5});
  }
  // Nothing waits for a single rank, and MPI_Abort would print messages of its own.
  if (n_ranks > 1) MPI_Abort(MPI_COMM_WORLD, core::to_int(error.code()));
  std::_Exit(core::to_int(error.code()));
}

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  const std::string_view full{name.data()};
  return std::string{full.substr(0, full.find('.'))};
}

}  // namespace lockstep::runtime
