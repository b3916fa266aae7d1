// A process whose stdout is a pipe that takes nothing more.
// Invariant: it is gone when the test is over; its stderr goes to /dev/null.
// Used by tests of code that looks for output that nobody reads.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace lockstep::runtime {

/// Stdout becomes a full pipe; returns the end that nobody reads.
inline int fill_stdout() {
  int ends[2];
  EXPECT_EQ(pipe2(ends, O_NONBLOCK), 0);
  const std::string page(4096, 'x');
  while (write(ends[1], page.data(), page.size()) > 0) continue;
  dup2(ends[1], STDOUT_FILENO);
  close(ends[1]);
  return ends[0];
}

class WithFullOutput {
 public:
  WithFullOutput() {
    const int kept = dup(STDOUT_FILENO);
    reader_ = fill_stdout();
    process_ = fork();
    if (process_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
      raise(SIGSTOP);
      _exit(0);
    }
    dup2(kept, STDOUT_FILENO);
    close(kept);
    waitpid(process_, nullptr, WUNTRACED);
  }
  ~WithFullOutput() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    close(reader_);
  }
  WithFullOutput(const WithFullOutput&) = delete;
  WithFullOutput& operator=(const WithFullOutput&) = delete;

  [[nodiscard]] pid_t pid() const noexcept { return process_; }
  /// Makes room for more.
  void read_some() const {
    char some[65536];
    EXPECT_GT(read(reader_, some, sizeof some), 0);
  }

 private:
  int reader_ = -1;
  pid_t process_ = 0;
};

}  // namespace lockstep::runtime
