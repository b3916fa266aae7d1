// A command of a program within a test's process, whose ranks are threads or the processes of the test: its output,
// exit code and files.
// Invariant: returns what a user would see; starts no process and never ends this one.
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

/// How the program ended, and the output of all ranks.
struct Ended {
  int exit_code = 0;
  std::string out{};
  std::string err{};

  /// The value after `key` on the line of stdout that begins with it, such as "digest"; empty if there is none.
  [[nodiscard]] std::string line(const std::string& key) const;
};

/// Returns a rank's exit code.
using RunRank = std::function<int(const runtime::Communicator&)>;

/// Runs on threads; rank r is on node `nodes[r]`.
[[nodiscard]] Ended run_ranks(const std::vector<int>& nodes, const RunRank& run);
/// Collective: runs on the ranks of `world`, which are processes. All get the output of all ranks.
[[nodiscard]] Ended run_processes(const runtime::Communicator& world, const RunRank& run);

/// Splits `words` at spaces outside of single quotes.
[[nodiscard]] std::vector<std::string> words_of(std::string_view words);

/// Everything in the working folder: files by name with their bytes, folders with none.
[[nodiscard]] std::map<std::string, std::string> files_here();

/// Each test has its own working folder, the same on all ranks of `world`.
class InFolder : public testing::Test {
 public:
  /// Writes a file, and creates the folders that contain it.
  static void write(const std::string& path, std::string_view bytes);

 protected:
  explicit InFolder(const runtime::Communicator& world = runtime::Communicator::alone());
  ~InFolder() override;

 private:
  const runtime::Communicator& world_;
  std::string before_;
  std::string folder_;
};

/// Sets variables of the environment while it lives. No thread may read or set one when it is made or ends.
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

/// Whether a part of `text` matches the pattern, in which ^ and $ are the ends of a line.
[[nodiscard]] bool matches(const std::string& text, const std::string& pattern);

/// A row of a table of refusals.
struct Refused {
  std::string line;                 ///< the arguments
  std::vector<std::string> says{};  ///< parts of the message
  int n_ranks = 0;                  ///< for a job of this many ranks; 0: any
};

using Program = std::function<Ended(const std::vector<std::string>& arguments, int n_ranks)>;

/// Expects exit code 2, one message from one of one or three ranks with all that `refused` says, nothing on stdout, and
/// unchanged files.
void expect_refused(const Program& program, const Refused& refused);

/// Expects exit code 0 without an error; returns the output.
Ended expect_done(const Program& program, const std::string& line, int n_ranks = 1);

/// Expects the exit code, and texts in stdout or stderr.
void expect_told(const Ended& ended, int code, const std::vector<std::string>& says);

}  // namespace lockstep::support
