// Possible defects of correctly stored values: NaN and infinity, numbers that float32 lacks, labels without a class.
// Invariant: reads the bytes as they are stored, at any alignment.
// Used by data/write/ and data/read/verify.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include "core/dtype.hpp"
#include "data/format/spec.hpp"

namespace lockstep::data {

/// A count of numbers of some kind.
struct CountedValues {
  std::uint64_t n = 0;
  std::array<std::byte, 8> first{};  ///< as it is stored
};

/// Facts about many values, in a form that can be sent.
struct ValueFacts {
  std::uint64_t n_values = 0;
  std::uint64_t n_not_finite = 0;  ///< NaN or infinite
  CountedValues rounded{};         ///< whole numbers that float32 cannot hold
  CountedValues beyond{};          ///< finite numbers that become infinite in float32
  CountedValues marks{};           ///< -999, -9999 and the like, with which many programs mark missing values
  double highest = -std::numeric_limits<double>::infinity();  ///< of the finite values
};

/// Adds `values` to `facts`.
void add_values(core::DType dtype, std::span<const std::byte> values, ValueFacts& facts) noexcept;
void add(ValueFacts& facts, const ValueFacts& later) noexcept;

/// "-9999"
[[nodiscard]] std::string describe_value(core::DType dtype, const CountedValues& counted);
/// "16777217 (as float32 16777216)"
[[nodiscard]] std::string describe_loss(core::DType dtype, const CountedValues& counted);

struct BadLabel {
  std::uint64_t sample = 0;  ///< its index among the given ones
  std::string value;
};

/// Returns the first of the labels `y` that is not a class; nothing if there are no classes.
[[nodiscard]] std::optional<BadLabel> find_bad_label(const SetSpec& spec, std::span<const std::byte> y);

/// "0 to 9, as there are 10 classes"
[[nodiscard]] std::string expected_labels(const SetSpec& spec);

}  // namespace lockstep::data
