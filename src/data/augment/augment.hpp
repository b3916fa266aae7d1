// Converts a stored sample to the network's input by a chain of augmentations, one sample at a time.
// Invariant: the pixels depend only on (seed, epoch, sample id, step of the chain), never on thread, rank or batch.
// Used by data/load/loader (in its decode threads) and `lockstep shard bench`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/augment/image_view.hpp"
#include "data/augment/lookup.hpp"
#include "data/format/spec.hpp"

namespace lockstep::data {

/// One step, as the recipe writes it.
struct AugmentStep {
  enum class Kind { random_crop, horizontal_flip, random_resized_crop, resize, center_crop, normalize };
  Kind kind = Kind::normalize;
  std::uint64_t height = 0;  ///< of the crop or resize; width 0: a resize of the shorter side that keeps the aspect
  std::uint64_t width = 0;
  std::uint64_t padding = 0;                      ///< random_crop: zeros added on each side before
  double probability = 0.5;                       ///< horizontal_flip
  std::array<double, 2> scale{0.08, 1.0};         ///< random_resized_crop: fraction of the area
  std::array<double, 2> ratio{3.0 / 4, 4.0 / 3};  ///< random_resized_crop: width / height
  std::vector<double> mean{};                     ///< normalize: per channel, for values in [0, 1]
  std::vector<double> stddev{};
};

/// "crop:32:4,flip,normalize:0.5:0.25" as steps: crop:SIZE[:PADDING], flip[:P], rrcrop:SIZE, resize:SIZE,
/// centercrop:SIZE, normalize:MEAN:STD (each one number, or one per channel separated by '/'). SIZE is one number or
/// HEIGHTxWIDTH; one number for resize is the shorter side. An empty text means no step. Throws core::Error (usage)
/// naming `flag`.
[[nodiscard]] std::vector<AugmentStep> parse_augment(std::string_view text, std::string_view flag);

struct AugmentOptions {
  std::vector<AugmentStep> steps{};
  std::string key = "augment";  ///< name of the steps in messages: "val-augment", "--augment"
  /// The type of the result: float32 or bfloat16; without any step also int64, for ids, or the stored type.
  core::DType dtype = core::DType::float32;
  ChannelOrder layout = ChannelOrder::nchw;
  std::uint64_t seed = 1;
};

/// A checked chain for one kind of sample. Thread-safe; the caller provides scratch memory.
///
/// uint8 samples of two or three dimensions (rows, columns, channels), and encoded ones as RGB, are images. They become
/// [channels, rows, columns] or [rows, columns, channels] of `dtype`. Other uint8 and float arrays keep their shape,
/// and can only be normalized, by channels of their last dimension. Other integers, and ids, become numbers of `dtype`
/// and take no steps. A sample without a step is passed on as stored if its stored type is requested.
class Augment {
 public:
  /// Throws core::Error (usage) if a step does not fit the result of the previous ones (shape, channels), or if images
  /// would have different sizes. uint8 without normalize becomes value / 255; normalize comes last.
  Augment(const SetSpec& spec, AugmentOptions options);
  ~Augment();
  Augment(Augment&&) noexcept;

  [[nodiscard]] const ArraySpec& output() const noexcept;
  /// Whether each number is converted by itself, so that apply() may convert consecutive samples together.
  [[nodiscard]] bool is_elementwise() const noexcept;
  /// Whether samples are passed on as stored.
  [[nodiscard]] bool is_identity() const noexcept;
  [[nodiscard]] std::size_t scratch_bytes() const noexcept;
  /// The images of take(): rows, columns, channels of uint8, never more than those of output(). Nothing if the result
  /// has no images.
  [[nodiscard]] const std::optional<ArraySpec>& pixels() const noexcept;
  /// The numbers for the 256 levels of each channel of these images.
  [[nodiscard]] std::span<const float> levels() const noexcept;

  /// `x`: one sample as stored, or, for encoded sets, decoded by the caller (rows, columns, channels of uint8, with its
  /// height and width; 0, 0: those of the spec). `scratch`: scratch_bytes(); allocates memory for an encoded image that
  /// needs more. Throws core::Error (usage) if an encoded image is too small for a crop.
  void apply(std::span<const std::byte> x, std::uint64_t height, std::uint64_t width, std::uint64_t epoch,
             std::uint64_t id, std::span<std::byte> out, std::span<std::byte> scratch) const;

  /// An alternative to apply(): writes an image of pixels() to `out`, before its pixels become numbers, and returns the
  /// view that apply() would convert. Resizes are done here; flips, and crops that need no more pixels, are left to the
  /// view.
  [[nodiscard]] ImageView take(std::span<const std::byte> x, std::uint64_t height, std::uint64_t width,
                               std::uint64_t epoch, std::uint64_t id, std::span<std::byte> out,
                               std::span<std::byte> scratch) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::data
