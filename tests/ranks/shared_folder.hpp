// A temporary folder that all ranks of a test see, and its content.
// Invariant: removed when the test is over, on every rank.
// Used by the tests of packing and verification.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "support/ranks.hpp"

namespace lockstep::support {

class SharedFolder {
 public:
  SharedFolder() {
    const runtime::Communicator& world = session().world();
    std::string name = (std::filesystem::temp_directory_path() / "lockstep-ranks-XXXXXX").string();
    if (world.rank() == 0 && mkdtemp(name.data()) == nullptr) std::abort();
    path_ = world.broadcast(name);
  }
  /// Collective.
  ~SharedFolder() {
    session().world().barrier();
    if (session().world().rank() == 0) std::filesystem::remove_all(path_);
  }
  SharedFolder(const SharedFolder&) = delete;
  SharedFolder& operator=(const SharedFolder&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

[[nodiscard]] inline std::string content_of(const std::filesystem::path& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

/// The contents of all files by name.
[[nodiscard]] inline std::map<std::string, std::string> files_of(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator{folder})
    files[entry.path().filename().string()] = content_of(entry.path());
  return files;
}

}  // namespace lockstep::support
