#include "data/augment/augment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "core/error.hpp"
#include "data/augment/augment_chain.hpp"
#include "data/augment/augment_geometry.hpp"
#include "data/augment/convert.hpp"
#include "data/augment/lookup.hpp"
#include "data/image/image.hpp"

namespace lockstep::data {
namespace {

using Kind = AugmentStep::Kind;

/// Hands out pieces of the caller's memory, and allocates when that is used up.
class Scratch {
 public:
  explicit Scratch(std::span<std::byte> memory) : rest_{memory} {}

  [[nodiscard]] std::span<std::byte> take(std::size_t n_bytes) {
    if (n_bytes > rest_.size()) return own_.emplace_back(n_bytes);
    const std::span<std::byte> piece = rest_.first(n_bytes);
    rest_ = rest_.subspan(n_bytes);
    return piece;
  }

 private:
  std::span<std::byte> rest_;
  std::vector<std::vector<std::byte>> own_{};
};

/// Pixels in memory, and the view that the steps so far have left.
class Canvas {
 public:
  Canvas(std::span<const std::byte> pixels, Size size, std::size_t n_channels, std::span<std::byte> scratch)
      : pixels_{pixels}, size_{size}, n_channels_{n_channels}, view_{View::of(size)}, scratch_{scratch} {}

  [[nodiscard]] Size size() const noexcept { return view_.window.size(); }
  void flip() noexcept { view_ = view_.flipped(); }
  void crop(const Rect& part) noexcept { view_ = view_.cropped(part); }

  /// Resizes mirrored images as they are in memory, and mirrors later.
  void resize(Size to) {
    if (to == size()) return;
    if (!view_.is_all_of(size_)) {
      const std::span<std::byte> copy = scratch_.take(n_bytes(size()));
      copy_window(copy);
      replace(copy, size());
    }
    const std::span<std::byte> pixels = scratch_.take(n_bytes(to));
    const Box all{0, 0, static_cast<double>(size_.height), static_cast<double>(size_.width)};
    data::resize(pixels_, unsigned_of(size_.height), unsigned_of(size_.width), n_channels_, all, unsigned_of(to.height),
                 unsigned_of(to.width), pixels);
    replace(pixels, to);
  }

  void convert(const Lookup& lookup, std::span<std::byte> out) const {
    const Rect& seen = view_.visible;
    const Pixels image{pixels_.subspan(offset(seen)), unsigned_of(seen.height), unsigned_of(seen.width), row_bytes()};
    lookup.apply(image,
                 {view_.window.top - seen.top, view_.window.left - seen.left, unsigned_of(view_.window.height),
                  unsigned_of(view_.window.width), view_.is_flipped},
                 out);
  }

  /// Copies pixels that are all visible.
  [[nodiscard]] ImageView copy(std::span<std::byte> out) const {
    std::ranges::copy(pixels_, out.begin());
    return {static_cast<std::int32_t>(view_.window.top), static_cast<std::int32_t>(view_.window.left),
            view_.is_flipped ? 1U : 0U};
  }
  /// Copies the window. Neither a resize nor a reader of the view may see pixels that a crop has cut off: they are
  /// zeros, like those beyond the image.
  ImageView copy_window(std::span<std::byte> out) const {
    const Rect& window = view_.window;
    const Rect there = intersection(window, view_.visible);
    if (there.size() != window.size()) std::ranges::fill(out, std::byte{0});
    const std::size_t row = unsigned_of(window.width) * n_channels_;
    for (std::int64_t y = 0; y < there.height; ++y) {
      const Rect from{there.top + y, there.left, 1, there.width};
      const std::size_t to =
          unsigned_of(from.top - window.top) * row + unsigned_of(from.left - window.left) * n_channels_;
      std::memcpy(out.data() + to, pixels_.data() + offset(from), unsigned_of(there.width) * n_channels_);
    }
    return {0, 0, view_.is_flipped ? 1U : 0U};
  }

 private:
  static std::size_t unsigned_of(std::int64_t value) noexcept { return static_cast<std::size_t>(value); }
  [[nodiscard]] std::size_t n_bytes(Size size) const noexcept {
    return unsigned_of(size.height * size.width) * n_channels_;
  }
  [[nodiscard]] std::size_t row_bytes() const noexcept { return unsigned_of(size_.width) * n_channels_; }
  [[nodiscard]] std::size_t offset(const Rect& part) const noexcept {
    return unsigned_of(part.top) * row_bytes() + unsigned_of(part.left) * n_channels_;
  }

  void replace(std::span<const std::byte> pixels, Size size) noexcept {
    const bool is_flipped = view_.is_flipped;
    pixels_ = pixels;
    size_ = size;
    view_ = View::of(size);
    view_.is_flipped = is_flipped;
  }

  std::span<const std::byte> pixels_;
  Size size_;
  std::size_t n_channels_;
  View view_;
  Scratch scratch_;
};

[[noreturn]] void fail_too_small(const AugmentStep& step, Size image, std::uint64_t id) {
  core::fail_usage({.what = fmt::format("sample {} is an image of {}x{}", id, image.height, image.width),
                    .where = "augmentation",
                    .expected = fmt::format("at least {}x{} minus the padding, to crop", step.height, step.width),
                    .fix = "resize before the crop, or give it a padding"});
}

void apply_step(const AugmentStep& step, std::uint64_t id, core::Random random, Canvas& canvas) {
  switch (step.kind) {
    case Kind::random_crop:
      if (!fits(step, canvas.size())) fail_too_small(step, canvas.size(), id);
      return canvas.crop(random_crop(step, canvas.size(), random));
    case Kind::horizontal_flip:
      if (random.uniform() < step.probability) canvas.flip();
      return;
    case Kind::random_resized_crop:
      canvas.crop(random_resized_crop(step, canvas.size(), random));
      return canvas.resize({static_cast<std::int64_t>(step.height), static_cast<std::int64_t>(step.width)});
    case Kind::resize: return canvas.resize(resized(step, canvas.size()));
    case Kind::center_crop: return canvas.crop(center_crop(step, canvas.size()));
    case Kind::normalize: return;
  }
}

}  // namespace

struct Augment::State {
  State(const SetSpec& spec, AugmentOptions augment_options)
      : stored{spec.x.dtype}, options{std::move(augment_options)}, chain{make_chain(spec, options)} {
    if (chain.path != AugmentPath::pixels) return;
    const std::vector<Levels> of_channels = levels_of(chain);
    lookup.emplace(of_channels, options.dtype, chain.layout);
    for (const Levels& of_channel : of_channels) levels.insert(levels.end(), of_channel.begin(), of_channel.end());
  }

  /// Applies all steps except the conversion to numbers.
  Canvas look(std::span<const std::byte> x, std::uint64_t height, std::uint64_t width, std::uint64_t epoch,
              std::uint64_t id, std::span<std::byte> scratch) const {
    const Size size = chain.size.value_or(Size{static_cast<std::int64_t>(height), static_cast<std::int64_t>(width)});
    core::require(x.size() == static_cast<std::size_t>(size.height * size.width) * chain.n_channels,
                  "an image has as many pixels as its size says");
    Canvas canvas{x, size, chain.n_channels, scratch};
    for (std::size_t i = 0; i < chain.geometry.size(); ++i)
      apply_step(chain.geometry[i], id, draws_of(options.seed, epoch, id, i), canvas);
    return canvas;
  }

  core::DType stored;
  AugmentOptions options;
  AugmentChain chain;
  std::optional<Lookup> lookup{};
  std::vector<float> levels{};  ///< channel by channel
};

Augment::Augment(const SetSpec& spec, AugmentOptions options)
    : state_{std::make_unique<State>(spec, std::move(options))} {}
Augment::~Augment() = default;
Augment::Augment(Augment&&) noexcept = default;

const ArraySpec& Augment::output() const noexcept { return state_->chain.output; }
bool Augment::is_elementwise() const noexcept { return state_->chain.path == AugmentPath::numbers; }
bool Augment::is_identity() const noexcept {
  return is_elementwise() && state_->chain.mean.empty() && output().dtype == state_->stored;
}
std::size_t Augment::scratch_bytes() const noexcept { return state_->chain.scratch_bytes; }
const std::optional<ArraySpec>& Augment::pixels() const noexcept { return state_->chain.pixels; }
std::span<const float> Augment::levels() const noexcept { return state_->levels; }

void Augment::apply(std::span<const std::byte> x, std::uint64_t height, std::uint64_t width, std::uint64_t epoch,
                    std::uint64_t id, std::span<std::byte> out, std::span<std::byte> scratch) const {
  const AugmentChain& chain = state_->chain;
  if (chain.path == AugmentPath::numbers)
    return convert(state_->stored, x, chain.output.dtype, out, {.mean = chain.mean, .stddev = chain.stddev});
  core::require(out.size() == chain.output.bytes(), "the output has the size of the augmented sample");
  state_->look(x, height, width, epoch, id, scratch).convert(*state_->lookup, out);
}

ImageView Augment::take(std::span<const std::byte> x, std::uint64_t height, std::uint64_t width, std::uint64_t epoch,
                        std::uint64_t id, std::span<std::byte> out, std::span<std::byte> scratch) const {
  const AugmentChain& chain = state_->chain;
  core::require(chain.pixels && out.size() == chain.pixels->bytes(), "the output has the size of the image's pixels");
  const Canvas canvas = state_->look(x, height, width, epoch, id, scratch);
  return chain.keeps_stored ? canvas.copy(out) : canvas.copy_window(out);
}

}  // namespace lockstep::data
