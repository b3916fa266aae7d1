#include "data/augment/augment_geometry.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep::data {
namespace {

// Separates these numbers from the sampler's, which has the same seed.
constexpr std::uint64_t augment_salt = 0xa0761d6478bd642f;

Size size_of(const AugmentStep& step) noexcept {
  return {static_cast<std::int64_t>(step.height), static_cast<std::int64_t>(step.width)};
}

std::int64_t up_to(std::int64_t largest, core::Random& random) noexcept {
  return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(largest) + 1));
}

double draw_between(double from, double to, core::Random& random) noexcept {
  return from + (to - from) * random.uniform();
}

/// Rounds to nearest, ties to even, as Python's round().
std::int64_t rounded(double value) noexcept { return static_cast<std::int64_t>(std::nearbyint(value)); }

Rect in_the_middle(Size part, Size image) noexcept {
  return {(image.height - part.height) / 2, (image.width - part.width) / 2, part.height, part.width};
}

}  // namespace

Rect intersection(const Rect& a, const Rect& b) noexcept {
  const std::int64_t top = std::max(a.top, b.top);
  const std::int64_t left = std::max(a.left, b.left);
  const std::int64_t bottom = std::min(a.top + a.height, b.top + b.height);
  const std::int64_t right = std::min(a.left + a.width, b.left + b.width);
  if (bottom <= top || right <= left) return {};
  return {top, left, bottom - top, right - left};
}

View View::of(Size image) noexcept {
  const Rect all{0, 0, image.height, image.width};
  return {all, all, false};
}

View View::flipped() const noexcept { return {window, visible, !is_flipped}; }

View View::cropped(const Rect& part) const noexcept {
  const std::int64_t left = is_flipped ? window.width - part.left - part.width : part.left;
  return {
      {window.top + part.top, window.left + left, part.height, part.width}, intersection(visible, window), is_flipped};
}

core::Random draws_of(std::uint64_t seed, std::uint64_t epoch, std::uint64_t id, std::uint64_t step) noexcept {
  return core::Random{core::Random{seed ^ augment_salt, epoch}.next(), id * max_steps + step};
}

bool fits(const AugmentStep& step, Size image) noexcept {
  const auto [height, width] = size_of(step);
  const auto padding = static_cast<std::int64_t>(2 * step.padding);
  return height <= image.height + padding && width <= image.width + padding;
}

Rect random_crop(const AugmentStep& step, Size image, core::Random& random) noexcept {
  const auto [height, width] = size_of(step);
  const auto padding = static_cast<std::int64_t>(step.padding);
  const std::int64_t top = up_to(image.height + 2 * padding - height, random) - padding;
  const std::int64_t left = up_to(image.width + 2 * padding - width, random) - padding;
  return {top, left, height, width};
}

Rect random_resized_crop(const AugmentStep& step, Size image, core::Random& random) noexcept {
  const double image_height = static_cast<double>(image.height);
  const double image_width = static_cast<double>(image.width);
  for (int i = 0; i < 10; ++i) {
    const double area = image_height * image_width * draw_between(step.scale[0], step.scale[1], random);
    const double aspect = std::exp(draw_between(std::log(step.ratio[0]), std::log(step.ratio[1]), random));
    const std::int64_t width = rounded(std::sqrt(area * aspect));
    const std::int64_t height = rounded(std::sqrt(area / aspect));
    if (width <= 0 || width > image.width || height <= 0 || height > image.height) continue;
    const std::int64_t top = up_to(image.height - height, random);
    return {top, up_to(image.width - width, random), height, width};
  }
  const double aspect = std::clamp(image_width / image_height, step.ratio[0], step.ratio[1]);
  const Size part{std::clamp<std::int64_t>(rounded(image_width / aspect), 1, image.height),
                  std::clamp<std::int64_t>(rounded(image_height * aspect), 1, image.width)};
  return in_the_middle(part, image);
}

Rect center_crop(const AugmentStep& step, Size image) noexcept {
  const auto [height, width] = size_of(step);
  // Pads an image that is too small first; an odd row or column of zeros goes after it.
  const auto begin = [](std::int64_t n_there, std::int64_t n) {
    return n <= n_there ? rounded(static_cast<double>(n_there - n) / 2) : -((n - n_there) / 2);
  };
  return {begin(image.height, height), begin(image.width, width), height, width};
}

Size resized(const AugmentStep& step, Size image) noexcept {
  if (step.width > 0) return size_of(step);
  const auto shorter = static_cast<std::int64_t>(step.height);
  if (image.width <= image.height) return {shorter * image.height / image.width, shorter};
  return {shorter, shorter * image.width / image.height};
}

}  // namespace lockstep::data
