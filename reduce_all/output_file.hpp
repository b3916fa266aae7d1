// A result file that is never seen half written.
// Invariant: an existing file stays as it is until the first content replaces it; every replacement is a rename.
// Used by the report.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::reduce_all {

class OutputFile {
 public:
  /// Tries to create PATH.tmp beside it. Throws core::Error (usage, naming `flag`) if `path` could not be replaced,
  /// or lies in a set of shards.
  OutputFile(const std::string& path, std::string_view flag);

  /// Throws core::Error (system) if the file system refuses, for example because it is full.
  void replace(std::string_view content);

 private:
  std::string path_;
  std::string temporary_;
};

}  // namespace lockstep::reduce_all
