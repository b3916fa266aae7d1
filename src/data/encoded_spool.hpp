// Bytes put aside on the disk until it is known how many there are: HDF5 wants the size of an array first.
// Invariant: the file has no name, so nothing is left of it however the program ends.
// Used by data/shard_writer for encoded samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>

#include "core/handle.hpp"

namespace lockstep::data {

class EncodedSpool {
 public:
  /// A file in `folder`. core::Error (system) here and below if the disk is full or fails.
  explicit EncodedSpool(const std::string& folder);

  void append(std::span<const std::byte> bytes);
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  /// Back to the first byte; after that, read() delivers all of them in order.
  void rewind();
  void read(std::span<std::byte> bytes);

 private:
  struct FilePolicy {
    using Raw = std::FILE*;
    static Raw null() noexcept { return nullptr; }
    static void destroy(Raw raw) noexcept { std::fclose(raw); }
  };

  std::string folder_;
  core::UniqueHandle<FilePolicy> file_;
  std::uint64_t size_ = 0;
};

}  // namespace lockstep::data
