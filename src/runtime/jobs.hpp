// This program started again as jobs, one after another, by a process that does nothing but wait for them.
// Invariant: while one lives, the signals that ask for an end are held: they are passed on to the job there is, no
// other is started after, and none outlives this process for long.
// Used by `lockstep train --verify-resume`.
#pragma once

#include <csignal>
#include <functional>
#include <string>
#include <vector>

namespace lockstep::runtime {

/// Where the output of a job goes: files, which are replaced.
struct JobOutput {
  std::string out{};
  std::string err{};
};

/// Who runs them, which tests do in their own process.
class JobRunner {
 public:
  JobRunner() = default;
  virtual ~JobRunner() = default;
  JobRunner(const JobRunner&) = delete;
  JobRunner& operator=(const JobRunner&) = delete;

  /// Runs this program with `arguments` until it ends; its exit code, or 128 + the signal that ended it. `due`, if
  /// given, is asked some 50 times a second for a signal to send (0: none). After asked() it starts nothing. Throws
  /// core::Error (system) if it cannot be started.
  virtual int run(const std::vector<std::string>& arguments, const JobOutput& output,
                  const std::function<int()>& due = {}) = 0;

  /// The signal that asked this process for an end; 0: none has.
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
  /// Waits for a signal, 20 ms at most, and notes it. 0: none that asks for an end.
  int await_signal();

  sigset_t held_{};
  sigset_t before_{};
  int asked_ = 0;
};

}  // namespace lockstep::runtime
