// What the fuzz targets of the importers share: input as files, and reading a source to its end.
// Invariant: core::Error is the only exception let through silently; anything else ends the process.
// Used by {idx,cifar,npy,npz,csv,pickle}_fuzz.cpp.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "data/importers/importers.hpp"

namespace lockstep::fuzz {

constexpr std::size_t most_input_bytes = std::size_t{1} << 16;
constexpr std::uint64_t most_read_bytes = std::uint64_t{1} << 22;

/// A folder that is removed at the end of the process.
class Folder {
 public:
  Folder() { std::filesystem::create_directories(path_); }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] std::string path() const { return path_.string(); }

  std::string write(const std::string& name, std::string_view content) const {
    std::filesystem::remove(path_ / name);  // a file cut and written again waits for the disk
    std::ofstream{path_ / name, std::ios::binary} << content;
    return (path_ / name).string();
  }

 private:
  std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / ("lockstep_fuzz_" + std::to_string(::getpid()));
};

/// Cuts input into parts: each but the last begins with its length, two bytes, the lower first.
class Parts {
 public:
  Parts(const std::uint8_t* data, std::size_t size) : left_{reinterpret_cast<const char*>(data), size} {}

  std::uint8_t byte() {
    const std::string_view text = take(1);
    return text.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(text[0]);
  }
  std::string_view part() {
    const std::size_t low = byte();
    return take(low | std::size_t{byte()} << 8);
  }
  [[nodiscard]] std::string_view rest() const noexcept { return left_; }

 private:
  std::string_view take(std::size_t n) {
    const std::string_view text = left_.substr(0, n);
    left_.remove_prefix(text.size());
    return text;
  }

  std::string_view left_;
};

inline void read_all(data::Source& source) {
  const std::uint64_t sample_bytes = source.spec().x.bytes() + source.spec().y.bytes();
  const auto splits = source.splits();
  for (std::size_t split = 0; split < splits.size(); ++split) {
    const std::uint64_t n = std::min(splits[split].n_samples, most_read_bytes / sample_bytes);
    std::vector<std::byte> x(n * source.spec().x.bytes());
    std::vector<std::byte> y(n * source.spec().y.bytes());
    source.read(split, splits[split].n_samples - n, n, x, y);
  }
  static_cast<void>(source.remarks());
  static_cast<void>(source.extra_files());
}

/// Opens a source with `open` and reads it; an Error is the right answer to wrong input.
template <class Open>
int try_source(Open&& open) {
  try {
    read_all(*open());
  } catch (const core::Error&) {
  }
  return 0;
}

}  // namespace lockstep::fuzz
