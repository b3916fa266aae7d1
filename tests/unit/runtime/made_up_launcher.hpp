// A process that looks like a launcher.
// Invariant: it is gone when the test is over.
// Used by tests of code that watches a launcher.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <optional>
#include <string>

#include "runtime/launcher.hpp"
#include "runtime/process.hpp"
#include "unit/io/temporary_folder.hpp"

namespace lockstep::runtime {

/// Stops the process, which need not be a child, and returns when it is stopped: a state that stays.
inline void stop(pid_t process) {
  kill(process, SIGSTOP);
  while (read_process(process)->state != 'T') usleep(100);
}

/// A process with the name of a launcher that runs `life`; its stderr is a file.
class MadeUpLauncher {
 public:
  explicit MadeUpLauncher(const std::function<void()>& life, const char* name = "mpirun") {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    process_ = fork();
    if (process_ == 0) {
      alarm(60);
      prctl(PR_SET_NAME, name);
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      dup2(open((folder_ / "err").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), STDERR_FILENO);
      signal(SIGPIPE, SIG_IGN);
      ready_ = ready[1];
      life();
      _exit(0);
    }
    close(ready[1]);
    char byte = 0;
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
  }
  ~MadeUpLauncher() {
    if (!status_) kill(process_, SIGKILL);
    static_cast<void>(end());
  }
  MadeUpLauncher(const MadeUpLauncher&) = delete;
  MadeUpLauncher& operator=(const MadeUpLauncher&) = delete;

  /// Called in the process when everything is as the test needs it.
  static void tell_ready() { EXPECT_EQ(write(ready_, "r", 1), 1); }
  [[noreturn]] static void stay() {
    tell_ready();
    for (;;) pause();
  }

  [[nodiscard]] pid_t process() const noexcept { return process_; }
  [[nodiscard]] LauncherHint hint() const {
    return {.name = "Open MPI mpirun",
            .job_key = "job",
            .rank = 0,
            .n_ranks = 2,
            .local_rank = 0,
            .n_local_ranks = 2,
            .launcher = process_};
  }
  /// Waits for its end; returns its status.
  int end() {
    int status = 0;
    if (!status_ && waitpid(process_, &status, 0) == process_) status_ = status;
    return status_.value_or(-1);
  }
  [[nodiscard]] bool lives() const { return kill(process_, 0) == 0 && waitpid(process_, nullptr, WNOHANG) == 0; }
  [[nodiscard]] std::string said() const { return io::get(folder_ / "err"); }

 private:
  static inline int ready_ = -1;
  io::TemporaryFolder folder_{};
  pid_t process_ = 0;
  std::optional<int> status_{};
};

}  // namespace lockstep::runtime
