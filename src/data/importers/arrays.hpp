// Samples as pairs of arrays: row i of x and row i of y are sample i.
// Invariant: all splits of a source have one element type and row shape; labels take the smallest unsigned type.
// Used by the importers whose files are arrays (IDX, npy, HDF5) or become some (CSV).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/format/source.hpp"
#include "data/importers/input.hpp"

namespace lockstep::data {

/// An array in a file, whose first dimension counts the samples.
class RowArray {
 public:
  /// `place` is what errors call it. core::Error (usage) if there is no dimension, one is 0, or all is
  /// beyond 2^63 bytes.
  RowArray(std::string place, core::DType dtype, const std::vector<std::uint64_t>& dimensions);
  virtual ~RowArray() = default;
  RowArray(const RowArray&) = delete;
  RowArray& operator=(const RowArray&) = delete;

  [[nodiscard]] const std::string& place() const noexcept { return place_; }
  [[nodiscard]] std::uint64_t n_rows() const noexcept { return n_rows_; }
  [[nodiscard]] const ArraySpec& row() const noexcept { return row_; }
  [[nodiscard]] std::uint64_t row_bytes() const noexcept { return row_bytes_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return n_rows_ * row_bytes_; }
  /// Whether rows are numbers that stand for words.
  [[nodiscard]] virtual bool stands_for_words() const noexcept { return false; }
  /// Rows [first, first + n), n * row_bytes() bytes.
  virtual void read_rows(std::uint64_t first, std::uint64_t n, std::span<std::byte> data) const = 0;

 private:
  std::string place_;
  std::uint64_t n_rows_ = 0;
  ArraySpec row_;
  std::uint64_t row_bytes_ = 0;
};

/// An array that lies in one piece in an input.
class InputArray final : public RowArray {
 public:
  /// core::Error (usage) unless the array reaches from byte `offset` to the end of the input.
  InputArray(Input input, std::uint64_t offset, core::DType dtype, const std::vector<std::uint64_t>& dimensions);
  void read_rows(std::uint64_t first, std::uint64_t n, std::span<std::byte> data) const override;

 private:
  Input input_;
  std::uint64_t offset_;
};

struct ArrayPair {
  std::string split;
  std::unique_ptr<RowArray> x;
  std::unique_ptr<RowArray> y;
};

struct ArrayOptions {
  std::uint64_t least_classes = 0;   ///< 0: that labels are classes is a guess, and a remark says so
  bool no_classes = false;           ///< labels stay the numbers they are
  std::vector<std::string> words{};  ///< what label i stands for; the classes are these, sorted
  std::vector<Remark> remarks{};     ///< before the source's own
  std::vector<Spool> kept{};         ///< as long as the source, for other ranks of the node to open
};

/// The source of these pairs, one per split. Integers of y, one per sample and all from 0 to 65535, are taken as
/// classes, named by their numbers. Throws core::Error (usage) if x and y differ in length, or splits in shape or type.
[[nodiscard]] std::unique_ptr<Source> make_array_source(std::vector<ArrayPair> pairs, ArrayOptions options = {});

/// "0", "1", ... for classes without names.
[[nodiscard]] std::vector<std::string> numbered_classes(std::uint64_t n);

}  // namespace lockstep::data
