// What can be wrong with values that are stored right: NaN and infinity, labels without a class.
// Invariant: looks at the bytes as they are stored, at any alignment.
// Used by data/write/pack and data/read/verify.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/dtype.hpp"
#include "data/format/spec.hpp"

namespace lockstep::data {

/// Values that are NaN or infinite.
[[nodiscard]] std::uint64_t count_not_finite(core::DType dtype, std::span<const std::byte> values) noexcept;

struct BadLabel {
  std::uint64_t sample = 0;  ///< of those given
  std::string value;
};

/// The first of the labels `y` that is none of the classes; nothing if there are no classes.
[[nodiscard]] std::optional<BadLabel> find_bad_label(const SetSpec& spec, std::span<const std::byte> y);

/// "0 to 9, as there are 10 classes"
[[nodiscard]] std::string expected_labels(const SetSpec& spec);

}  // namespace lockstep::data
