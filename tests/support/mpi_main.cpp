#include "support/mpi_main.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>

#include "core/error.hpp"
#include "runtime/launcher.hpp"
#include "runtime/watch/watchdog.hpp"

namespace lockstep::support {
namespace {

// Tests are plain functions: main() has no other way to hand them its session.
const runtime::Session* current_session = nullptr;
runtime::Watchdog* current_watchdog = nullptr;

/// Prints failures of ranks above 0.
class FailurePrinter : public testing::EmptyTestEventListener {
 public:
  explicit FailurePrinter(int rank) : rank_{rank} {}

 private:
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    const char* const file = result.file_name() != nullptr ? result.file_name() : "unknown file";
    fmt::print(stderr, "[rank {}] {}:{}: {}\n", rank_, file, result.line_number(), result.message());
  }

  int rank_;
};

/// A rank that fails early may leave the others waiting: the watchdog then ends the job and names it.
class Heartbeat : public testing::EmptyTestEventListener {
 public:
  explicit Heartbeat(runtime::Watchdog& watchdog) : watchdog_{watchdog} {}

 private:
  void OnTestStart(const testing::TestInfo&) override { watchdog_.beat(); }

  runtime::Watchdog& watchdog_;
};

int run_all_tests(const runtime::Communicator& world, runtime::Watchdog& watchdog) {
  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  if (world.rank() > 0) {
    const std::unique_ptr<testing::TestEventListener> silenced{listeners.Release(listeners.default_result_printer())};
    listeners.Append(new FailurePrinter{world.rank()});  // GoogleTest deletes its listeners
  }
  listeners.Append(new Heartbeat{watchdog});
  const bool failed = RUN_ALL_TESTS() != 0;
  return world.any(failed) ? 1 : 0;
}

}  // namespace

const runtime::Session& session() { return *current_session; }
void beat() noexcept { current_watchdog->beat(); }

static int run(int argc, char** argv) {
  runtime::Watchdog watchdog{runtime::read_launcher_hint(), {150}};
  const runtime::Session mpi;
  current_session = &mpi;
  current_watchdog = &watchdog;
  watchdog.set_rank(mpi.world().rank(), mpi.world().n_ranks());
  testing::InitGoogleTest(&argc, argv);
  return run_all_tests(mpi.world(), watchdog);
}

}  // namespace lockstep::support

int main(int argc, char** argv) {
  try {
    return lockstep::support::run(argc, argv);
  } catch (const lockstep::core::Error& error) {
    lockstep::runtime::abort_job(error, "tests");
  }
}
