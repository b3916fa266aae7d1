// A command of a program within a test's process, on ranks that are threads: what it prints, returns and leaves.
// Invariant: what a user would see comes back; no process is started, nothing ends this one.
// Used by tests/program and tests/ranks.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
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

/// `run` returns a rank's exit code; rank r is on node `nodes[r]`.
[[nodiscard]] Ended run_ranks(const std::vector<int>& nodes,
                              const std::function<int(const runtime::Communicator&)>& run);

/// `words`, separated at spaces outside of single quotes.
[[nodiscard]] std::vector<std::string> words_of(std::string_view words);

/// Files by name with their bytes, folders with none, of all that is in the working folder.
[[nodiscard]] std::map<std::string, std::string> files_here();

/// Each test has a working folder of its own.
class InFolder : public testing::Test {
 public:
  /// A file, with the folders that it lies in.
  static void write(const std::string& path, std::string_view bytes);

 protected:
  InFolder();
  ~InFolder() override;

 private:
  std::string before_;
  std::string folder_;
};

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
