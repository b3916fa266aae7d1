// Where the pixels of a sample come from: crops and flips as arithmetic on rectangles, before a pixel is touched.
// Invariant: sizes and random parameters are torchvision's; everything outside a crop's source reads as 0.
// Used by data/augment/augment.
#pragma once

#include <cstdint>

#include "core/rng.hpp"
#include "data/augment/augment.hpp"

namespace lockstep::data {

struct Size {
  std::int64_t height = 0;
  std::int64_t width = 0;
  bool operator==(const Size&) const = default;
};

struct Rect {
  std::int64_t top = 0;
  std::int64_t left = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;

  [[nodiscard]] Size size() const noexcept { return {height, width}; }
  bool operator==(const Rect&) const = default;
};

[[nodiscard]] Rect intersection(const Rect& a, const Rect& b) noexcept;

/// What the steps so far have left of an image in memory, in that image's coordinates.
struct View {
  Rect window;   ///< the part in view; may extend beyond the visible one
  Rect visible;  ///< pixels of the image that no crop has cut off
  bool is_flipped = false;

  static View of(Size image) noexcept;
  [[nodiscard]] View flipped() const noexcept;
  /// The view of `part`, given in coordinates of this view.
  [[nodiscard]] View cropped(const Rect& part) const noexcept;
  /// Whether nothing of the image is cut off or added around it.
  [[nodiscard]] bool is_all_of(Size image) const noexcept {
    return window == Rect{0, 0, image.height, image.width} && visible == window;
  }
};

/// The random numbers of one step for one sample: torchvision's distributions over Philox.
[[nodiscard]] core::Random draws_of(std::uint64_t seed, std::uint64_t epoch, std::uint64_t id,
                                    std::uint64_t step) noexcept;
inline constexpr std::uint64_t max_steps = 16;

/// Whether a random_crop fits into an image of this size, including its padding.
[[nodiscard]] bool fits(const AugmentStep& step, Size image) noexcept;
[[nodiscard]] Rect random_crop(const AugmentStep& step, Size image, core::Random& random) noexcept;
/// Draws the fraction of the area uniformly in `scale`, the aspect log-uniformly in `ratio`: the first of ten tries
/// that fits, else the largest part in the middle with an allowed aspect.
[[nodiscard]] Rect random_resized_crop(const AugmentStep& step, Size image, core::Random& random) noexcept;
[[nodiscard]] Rect center_crop(const AugmentStep& step, Size image) noexcept;
[[nodiscard]] Size resized(const AugmentStep& step, Size image) noexcept;

}  // namespace lockstep::data
