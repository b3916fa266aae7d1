// A result file that is never seen half written.
// Invariant: an existing file stays as it is until the first content replaces it; every replacement is a rename.
// Used by the report.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::reduce_all {

class OutputFile {
 public:
  /// Tries to create a file beside it, and removes what killed runs have left of it. Throws core::Error (usage, naming
  /// `flag`) if `path` could not be replaced, or lies in a set of shards.
  OutputFile(const std::string& path, std::string_view flag);

  /// Throws core::Error (system) if the file system refuses, for example because it is full.
  void replace(std::string_view content);

 private:
  std::string path_;
};

}  // namespace lockstep::reduce_all
