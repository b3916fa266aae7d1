// Members of a zip archive, such as the arrays of an .npz file.
// Invariant: a member's check sum is verified when it is unpacked; memory does not grow with the member.
// Used by the npy importer, and by checkpoint/ for weights.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/handle.hpp"
#include "data/importers/input.hpp"

struct zip;

namespace lockstep::data {

class ZipArchive {
 public:
  /// core::Error (usage) if it is not a readable zip archive.
  explicit ZipArchive(const std::string& path);

  [[nodiscard]] std::vector<std::string> member_names() const;
  /// The unpacked size of a member, according to the archive.
  [[nodiscard]] std::uint64_t member_bytes(const std::string& member) const;
  /// Unpacks the first `most` bytes of a member, with errors as unpack().
  [[nodiscard]] Input head(const std::string& member, std::uint64_t most) const;
  /// Unpacks a member into a spool, which may be a shared one. core::Error (usage) naming archive and member if it is
  /// damaged or encrypted.
  [[nodiscard]] Input unpack(const std::string& member, SharedSpools* spools = nullptr) const;

 private:
  struct Policy {
    using Raw = struct zip*;
    static Raw null() noexcept { return nullptr; }
    static void destroy(Raw raw) noexcept;
  };

  [[nodiscard]] std::string place(const std::string& member) const;
  [[nodiscard]] Spool spool(const std::string& member, std::uint64_t most) const;

  std::string path_;
  core::UniqueHandle<Policy> archive_;
};

}  // namespace lockstep::data
