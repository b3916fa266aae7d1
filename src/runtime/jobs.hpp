// Runs this program again as jobs, one after another, in a process that only waits for them.
// Invariant: while one lives, signals that ask for an end are held: they are passed on to the current job, no other job
// is started afterwards, and no job outlives this process for long.
// Used by `lockstep train --verify-resume`.
#pragma once

#include <csignal>
#include <functional>
#include <string>
#include <vector>

namespace lockstep::runtime {

/// Files for the output of a job; existing ones are replaced.
struct JobOutput {
  std::string out{};
  std::string err{};
};

/// Runs jobs; tests run them in their own process.
class JobRunner {
 public:
  JobRunner() = default;
  virtual ~JobRunner() = default;
  JobRunner(const JobRunner&) = delete;
  JobRunner& operator=(const JobRunner&) = delete;

  /// Runs this program with `arguments` until it ends; returns its exit code, or 128 + the signal that ended it. `due`,
  /// if given, is called some 50 times a second and returns a signal to send (0: none). After asked() no job is
  /// started. Throws core::Error (system) if the job cannot be started.
  virtual int run(const std::vector<std::string>& arguments, const JobOutput& output,
                  const std::function<int()>& due = {}) = 0;

  /// The signal that asked this process for an end; 0: none.
  [[nodiscard]] virtual int asked() const noexcept = 0;
};

class Jobs final : public JobRunner {
 public:
  Jobs();
  ~Jobs() override;

  int run(const std::vector<std::string>& arguments, const JobOutput& output,
          const std::function<int()>& due = {}) override;
  [[nodiscard]] int asked() const noexcept override { return asked_; }

 private:
  /// Waits for a signal, at most 20 ms, and notes it. 0: no signal that asks for an end.
  int await_signal();

  sigset_t held_{};
  sigset_t before_{};
  int asked_ = 0;
};

}  // namespace lockstep::runtime
