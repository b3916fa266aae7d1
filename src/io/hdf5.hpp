// HDF5 files as owned values: the parts of the library that shards need, and no more.
// Invariant: every call is checked, and an error names file and data set with the library's own reason. Files carry no
// time stamps, so the same calls give the same bytes; only foreign files are locked. Only one thread of a process may
// call at a time, because the library is not thread-safe.
// Used by data/ (writing shards, importing foreign files, the reference path of reading) and the trainer's weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/dtype.hpp"
#include "core/units.hpp"
#include "io/codec.hpp"

namespace lockstep::io {

class File;

using Dimensions = std::vector<std::uint64_t>;

/// The place of a chunk or a contiguous data set in its file, as stored (compressed).
struct Extent {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  auto operator<=>(const Extent&) const = default;
};

/// How to treat values that were never written.
enum class Unwritten { refused, fill_value };

/// A data set of an open file; valid while the file is. Rows are along the first dimension.
class Hdf5Dataset {
 public:
  Hdf5Dataset(Hdf5Dataset&&) noexcept;
  Hdf5Dataset& operator=(Hdf5Dataset&&) noexcept;
  Hdf5Dataset(const Hdf5Dataset&) = delete;
  Hdf5Dataset& operator=(const Hdf5Dataset&) = delete;
  ~Hdf5Dataset();

  [[nodiscard]] const Dimensions& dimensions() const noexcept;
  /// Empty if Lockstep lacks the element type.
  [[nodiscard]] std::optional<core::DType> dtype() const noexcept;
  /// Such as "compound elements of 8 bytes".
  [[nodiscard]] std::string describe_elements() const;

  /// For files of other programs, before work starts: throws core::Error (usage) if a part of it was never written, or
  /// its chunks are too large to be read in pieces. With `fill_value` such a part is accepted, and the result says how
  /// large it is.
  std::string require_written(Unwritten unwritten = Unwritten::refused) const;

  /// Stores chunk number `chunk` (along the first dimension) unchanged: `stored` is already encoded.
  void write_chunk(std::uint64_t chunk, std::span<const std::byte> stored);
  /// Writes a whole contiguous data set.
  void write_all(std::span<const std::byte> data);
  /// Reads rows [first, first + n) through the library, in native byte order.
  void read_rows(std::uint64_t first, std::uint64_t n, std::span<std::byte> data) const;
  /// The same for columns: indices [first, first + n) along the last dimension.
  void read_columns(std::uint64_t first, std::uint64_t n, std::span<std::byte> data) const;
  /// Whether elements are texts, of fixed or any length.
  [[nodiscard]] bool is_text() const;
  /// Reads rows [first, first + n) with one text each. Throws core::Error (usage) if texts of fixed length are above 64
  /// KiB.
  [[nodiscard]] std::vector<std::string> read_texts(std::uint64_t first, std::uint64_t n) const;
  void set_attribute(const std::string& name, std::uint64_t value);
  [[nodiscard]] std::optional<std::uint64_t> find_number_attribute(const std::string& name) const;
  [[nodiscard]] std::optional<std::string> find_text_attribute(const std::string& name) const;
  /// Whether it has an attribute of this name, of any kind.
  [[nodiscard]] bool has_attribute(const std::string& name) const;
  /// The places of all chunks along the first dimension; for a contiguous data set its only place.
  [[nodiscard]] std::vector<Extent> extents() const;

 private:
  friend class Hdf5File;
  struct State;
  explicit Hdf5Dataset(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Whether links, external storage and virtual data sets may lead to files that the user has not named.
enum class OtherFiles { refused, followed };

class Hdf5File {
 public:
  /// Creates a file in the format that HDF5 1.10 and newer read; raw data are aligned to 4 KiB. Throws core::Error
  /// (system) if it cannot be created.
  static Hdf5File create(const std::string& path);
  /// Opens for reading, without locks. Throws core::Error (usage) if it is not a readable HDF5 file.
  static Hdf5File open(const std::string& path, OtherFiles others = OtherFiles::refused);
  /// The same for a user's file. Locks it for reading, as the library does, if the file system has locks. Throws
  /// core::Error (usage) if another process writes it.
  static Hdf5File open_foreign(const std::string& path, OtherFiles others = OtherFiles::refused);
  /// Opens the file that is already open, even if another now has its name; errors as above.
  static Hdf5File open(const File& file);
  Hdf5File(Hdf5File&&) noexcept;
  Hdf5File& operator=(Hdf5File&&) noexcept;
  Hdf5File(const Hdf5File&) = delete;
  Hdf5File& operator=(const Hdf5File&) = delete;
  ~Hdf5File();

  /// `chunk_rows` 0: contiguous. Chunks span all other dimensions. Stores bfloat16 as uint16 with an attribute.
  Hdf5Dataset create_dataset(const std::string& name, core::DType dtype, const Dimensions& dimensions,
                             std::uint64_t chunk_rows, Filter filter);
  /// Creates a contiguous data set that gets its place before its values. extents() says where to write them after the
  /// file is closed.
  Hdf5Dataset lay_out_dataset(const std::string& name, core::DType dtype, const Dimensions& dimensions);
  /// Throws core::Error (usage) if there is none of this name, or its content cannot be reached: behind a dangling
  /// link, in another file that does not exist or must not be followed, or packed by a filter that the library lacks.
  [[nodiscard]] Hdf5Dataset open_dataset(const std::string& name) const;
  /// Whether there is a data set of this name; follows links. Throws core::Error (usage) if a link leads nowhere, or
  /// the target cannot be opened.
  [[nodiscard]] bool has_dataset(const std::string& name) const;
  /// The names of all data sets, at any depth, "/" first, sorted; without those behind links to groups, or to files
  /// that are not followed.
  [[nodiscard]] std::vector<std::string> dataset_names() const;

  void set_attribute(const std::string& name, const std::string& value);
  void set_attribute(const std::string& name, std::uint64_t value);
  [[nodiscard]] std::string text_attribute(const std::string& name) const;
  [[nodiscard]] std::optional<std::string> find_text_attribute(const std::string& name) const;
  [[nodiscard]] std::optional<std::uint64_t> find_number_attribute(const std::string& name) const;

  /// Writes everything; throws core::Error (system) if the disk is full. The destructor only logs. After any failed
  /// write the file is empty and lost.
  void close();

 private:
  struct State;
  explicit Hdf5File(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

[[nodiscard]] std::string hdf5_version();

}  // namespace lockstep::io
