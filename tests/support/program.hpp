// A command of a program within a test's process, whose ranks are threads or the processes of the test: what it prints,
// returns and leaves.
// Invariant: what a user would see comes back; no process is started, nothing ends this one.
// Used by tests/program, tests/ranks and tests/mpi.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/communicator.hpp"

namespace lockstep::support {

/// How the program ended; what all ranks have printed.
struct Ended {
  int exit_code = 0;
  std::string out{};
  std::string err{};

  /// The value after `key` on the line of stdout that begins with it, such as "digest"; empty if there is none.
  [[nodiscard]] std::string line(const std::string& key) const;
};

/// Returns a rank's exit code.
using RunRank = std::function<int(const runtime::Communicator&)>;

/// On threads; rank r is on node `nodes[r]`.
[[nodiscard]] Ended run_ranks(const std::vector<int>& nodes, const RunRank& run);
/// Collective: on the ranks of `world`, which are processes. All get what all have printed.
[[nodiscard]] Ended run_processes(const runtime::Communicator& world, const RunRank& run);

/// `words`, separated at spaces outside of single quotes.
[[nodiscard]] std::vector<std::string> words_of(std::string_view words);

/// Files by name with their bytes, folders with none, of all that is in the working folder.
[[nodiscard]] std::map<std::string, std::string> files_here();

/// Each test has a working folder of its own, the same on all ranks of `world`.
class InFolder : public testing::Test {
 public:
  /// A file, with the folders that it lies in.
  static void write(const std::string& path, std::string_view bytes);

 protected:
  explicit InFolder(const runtime::Communicator& world = runtime::Communicator::alone());
  ~InFolder() override;

 private:
  const runtime::Communicator& world_;
  std::string before_;
  std::string folder_;
};

/// Variables of the environment with their values, while it lives. Nothing may read or set one at that moment.
class Variables {
 public:
  using Values = std::map<std::string, std::string>;

  explicit Variables(const Values& values);
  ~Variables();
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;

 private:
  std::map<std::string, std::optional<std::string>> before_{};
};

/// Whether a part of `text` is as the pattern tells, in which ^ and $ are the ends of a line.
[[nodiscard]] bool matches(const std::string& text, const std::string& pattern);

/// A line of a table of refusals.
struct Refused {
  std::string line;                 ///< the arguments
  std::vector<std::string> says{};  ///< what the message has
  int n_ranks = 0;                  ///< for a job of so many ranks; 0: of any
};

using Program = std::function<Ended(const std::vector<std::string>& arguments, int n_ranks)>;

/// Exit code 2, one message from one of one or three ranks with all that `refused` says, nothing on stdout, and every
/// file as it was.
void expect_refused(const Program& program, const Refused& refused);

/// Exit code 0 without an error; returns what was printed.
Ended expect_done(const Program& program, const std::string& line, int n_ranks = 1);

/// The exit code, and texts that stdout or stderr has.
void expect_told(const Ended& ended, int code, const std::vector<std::string>& says);

}  // namespace lockstep::support
