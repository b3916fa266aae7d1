// The effect of a chain of augmentations on one kind of sample, determined before any sample exists.
// Invariant: a chain that passes here can be applied to every sample; only an encoded image may be too small.
// Used by data/augment/augment.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "data/augment/augment.hpp"
#include "data/augment/augment_geometry.hpp"
#include "data/augment/lookup.hpp"

namespace lockstep::data {

/// The code that makes the result.
enum class AugmentPath {
  numbers,  ///< stored numbers one by one, converted and normalized if requested
  pixels    ///< uint8 through a table, after crops and resizes
};

struct AugmentChain {
  AugmentPath path = AugmentPath::numbers;
  std::size_t n_channels = 1;
  std::optional<Size> size{};  ///< of the stored pixels; nothing for encoded images; other arrays are one row
  ChannelOrder layout = ChannelOrder::nhwc;  ///< of the result; other arrays stay unchanged
  std::vector<AugmentStep> geometry{};       ///< the steps before normalize
  std::vector<float> mean{}, stddev{};       ///< of each channel; empty without normalize
  ArraySpec output{};
  std::optional<ArraySpec> pixels{};  ///< of images, before they become numbers
  bool keeps_stored = false;          ///< these are the stored pixels, because a view describes all steps
  std::size_t scratch_bytes = 0;
};

/// Throws core::Error (usage) as Augment does.
[[nodiscard]] AugmentChain make_chain(const SetSpec& spec, const AugmentOptions& options);

/// The numbers for each level of each channel, with torchvision's order of float32 operations.
[[nodiscard]] std::vector<Levels> levels_of(const AugmentChain& chain);

}  // namespace lockstep::data
