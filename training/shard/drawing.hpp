// One sample as text.
// Invariant: pure; a sample of any type and shape gives a few words, a small image of bytes also a drawing.
// Used by `lockstep shard head`.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "data/format/spec.hpp"

namespace lockstep::training::shard {

/// Describes up to 8 values one by one, more as "min 0, mean 33.3, max 255"; excludes and counts NaN.
[[nodiscard]] std::string describe_values(const data::ArraySpec& spec, std::span<const std::byte> values);

/// Ten shades, two characters a pixel; empty unless `spec` is a uint8 image of up to 32 x 32 pixels.
[[nodiscard]] std::string draw(const data::ArraySpec& spec, std::span<const std::byte> pixels);

}  // namespace lockstep::training::shard
