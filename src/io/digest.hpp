// Digests of whole files and byte ranges: XXH3, 128 bits, as 32 hexadecimal digits.
// Invariant: detects every accident; does not protect against an attacker.
// Used by data/ (manifest, verification) and training/ (weights and losses of a run).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace lockstep::io {

class File;

/// Digest of bytes that arrive in pieces.
class Digest {
 public:
  Digest();
  ~Digest();
  Digest(Digest&&) noexcept;
  Digest& operator=(Digest&&) noexcept;
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;
  void update(std::span<const std::byte> data) noexcept;
  /// 32 lower-case hexadecimal digits (canonical, big-endian form of XXH128).
  [[nodiscard]] std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

[[nodiscard]] std::string digest_of(std::span<const std::byte> data);
/// XXH3 with 64 bits, for comparisons within a process.
[[nodiscard]] std::uint64_t short_digest_of(std::span<const std::byte> data) noexcept;
/// Reads the file in pieces of 1 MiB.
[[nodiscard]] std::string digest_of_file(const std::string& path);
[[nodiscard]] std::string digest_of_file(const File& file);

}  // namespace lockstep::io
