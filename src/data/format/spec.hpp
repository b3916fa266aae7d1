// The description of a sample: element type and shape of its arrays, classes, encoding.
// Invariant: the same for every shard of a set; describes one sample, never a batch.
// Used by all of data/ and by the trainer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/dtype.hpp"

namespace lockstep::data {

/// One array of a sample, such as an image of uint8 [64, 64, 3] (rows, columns, channels) or a label, uint8 [].
struct ArraySpec {
  core::DType dtype = core::DType::uint8;
  std::vector<std::uint64_t> shape{};

  [[nodiscard]] std::uint64_t n_elements() const noexcept;
  [[nodiscard]] std::uint64_t bytes() const noexcept;
  bool operator==(const ArraySpec&) const = default;
};

/// "uint8 [28, 28]".
[[nodiscard]] std::string describe(const ArraySpec& array);

struct SetSpec {
  ArraySpec x;
  ArraySpec y;
  /// "raw", or "image": x is then a compressed image file of any length, which is decoded when it is loaded; x.dtype is
  /// uint8 and the shape is empty.
  std::string encoding = "raw";
  std::vector<std::string> classes{};  ///< names by label; empty if y is not a class

  [[nodiscard]] bool is_encoded() const noexcept { return encoding != "raw"; }
  bool operator==(const SetSpec&) const = default;
};

/// The smallest unsigned type that holds `n_classes` labels.
[[nodiscard]] core::DType label_dtype(std::size_t n_classes) noexcept;

}  // namespace lockstep::data
