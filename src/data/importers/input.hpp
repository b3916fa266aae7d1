// Input files as bytes, one after another or at any place, whether they are plain or gzip.
// Invariant: gzip is recognised by its first two bytes, never by the file's name; memory does not grow with the file.
// Used by the importers of arrays (Input) and of text (ByteStream).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <variant>

#include "data/write/shared_spools.hpp"
#include "io/file.hpp"

namespace lockstep::data {

/// Whether the name exists. A name that cannot be examined counts, because opening it says why.
[[nodiscard]] bool is_there(const std::filesystem::path& path);
/// Whether it exists and is not a folder.
[[nodiscard]] bool is_file(const std::filesystem::path& path);

/// core::Error (usage) if the file begins as one of another known format; `expected` is the format that is needed.
void refuse_other_format(const std::string& path, const std::string& expected);
/// The same for `head`, the first bytes of what messages call `where`.
void refuse_other_format(std::span<const std::byte> head, const std::string& where, const std::string& expected);

/// Thrown while an input is read before packing: a signal asks for an end.
struct Interrupted {};

class ByteStream {
 public:
  virtual ~ByteStream() = default;
  /// Fills `data` as far as the content reaches; returns the bytes, fewer than asked for only at the end. Throws
  /// core::Error (usage) naming file and byte if compressed data is damaged or truncated.
  virtual std::size_t read(std::span<std::byte> data) = 0;
};

[[nodiscard]] std::unique_ptr<ByteStream> open_stream(const std::string& path);

/// The content of a file at any place; that of a gzip file is unpacked into a spool first, which may be a shared one.
class Input {
 public:
  explicit Input(const std::string& path, SharedSpools* spools = nullptr);
  /// What was unpacked from elsewhere; `name` is what errors call it.
  Input(std::string name, Spool spool) : name_{std::move(name)}, bytes_{std::move(spool)}, size_{spool_size()} {}

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  /// core::Error (usage) if the content ends before.
  void read_at(std::uint64_t offset, std::span<std::byte> data) const;

 private:
  [[nodiscard]] std::uint64_t spool_size() const { return std::get<Spool>(bytes_).size(); }

  std::string name_;
  std::variant<io::File, Spool> bytes_;
  std::uint64_t size_;
};

}  // namespace lockstep::data
