#include "data/augment/augment_chain.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.hpp"

namespace lockstep::data {
namespace {

using core::DType;
using Kind = AugmentStep::Kind;

constexpr std::size_t encoded_channels = 3;
constexpr Size usual_photo{768, 1024};

[[noreturn]] void fail(const AugmentOptions& options, std::string what, std::string expected = {},
                       std::string fix = {}) {
  core::fail_usage(
      {.what = std::move(what), .where = options.key, .expected = std::move(expected), .fix = std::move(fix)});
}

bool is_image(const SetSpec& spec) {
  return spec.is_encoded() || (spec.x.dtype == DType::uint8 && (spec.x.shape.size() == 2 || spec.x.shape.size() == 3));
}

/// The size of the last dimension; arrays with fewer than three have one channel.
std::size_t channels_of(const SetSpec& spec) {
  if (spec.is_encoded()) return encoded_channels;
  return spec.x.shape.size() < 3 ? 1 : std::max<std::uint64_t>(1, spec.x.shape.back());
}

/// Splits off the normalization, which must come last.
void take_steps(const AugmentOptions& options, AugmentChain& chain) {
  const std::vector<AugmentStep>& steps = options.steps;
  if (steps.size() > max_steps)
    fail(options, fmt::format("{} steps", steps.size()), fmt::format("at most {}", max_steps));
  for (const AugmentStep& step : steps) {
    if (step.kind != Kind::normalize)
      chain.geometry.push_back(step);
    else if (&step != &steps.back())
      fail(options, "a step after normalize", "normalize once, as the last step");
  }
}

std::vector<float> per_channel(const AugmentOptions& options, const std::vector<double>& values,
                               std::size_t n_channels) {
  if (values.size() != 1 && values.size() != n_channels)
    fail(options,
         fmt::format("normalize has {} values for samples of {} channel{}", values.size(), n_channels,
                     n_channels == 1 ? "" : "s"),
         n_channels == 1 ? "one value: normalize:MEAN:STD"
                         : fmt::format("one value, or {} separated by '/', as 3 are in 0.1/0.2/0.3", n_channels));
  std::vector<float> all(n_channels, static_cast<float>(values.front()));
  if (values.size() == n_channels)
    std::transform(values.begin(), values.end(), all.begin(), [](double v) { return static_cast<float>(v); });
  return all;
}

/// Follows the sizes through the steps; returns the last, or nothing if it differs between images.
std::optional<Size> walk(const AugmentOptions& options, AugmentChain& chain) {
  std::optional<Size> size = chain.size;
  bool is_cropped = false;
  const auto n_bytes = [&](Size of) { return static_cast<std::size_t>(of.height * of.width) * chain.n_channels; };
  for (const AugmentStep& step : chain.geometry) {
    const Size wanted{static_cast<std::int64_t>(step.height), static_cast<std::int64_t>(step.width)};
    if (step.kind == Kind::horizontal_flip) continue;
    if (step.kind == Kind::random_crop || step.kind == Kind::center_crop) {
      if (step.kind == Kind::random_crop && size && !fits(step, *size))
        fail(
            options,
            fmt::format("a crop of {}x{} from images of {}x{}", wanted.height, wanted.width, size->height, size->width),
            "a crop that fits into the image with its padding", "give the crop a padding, or resize first");
      is_cropped = true;
      size = wanted;
      continue;
    }
    if (chain.n_channels != 1 && chain.n_channels != 3)
      fail(options, fmt::format("a resize of images of {} channels", chain.n_channels), "1 or 3 channels");
    if (is_cropped || step.kind == Kind::random_resized_crop)
      chain.scratch_bytes += n_bytes(size.value_or(usual_photo));
    is_cropped = false;
    const bool keeps_aspect = step.kind == Kind::resize && step.width == 0;
    if (!keeps_aspect)
      size = wanted;
    else if (size)
      size = resized(step, *size);
    // An encoded image is rarely longer than twice its shorter side.
    chain.scratch_bytes += n_bytes(size.value_or(Size{wanted.height, 2 * wanted.height}));
  }
  return size;
}

/// An image that is cropped once, without a resize, can be viewed as stored. A second crop would see zeros where the
/// first has cut off.
bool is_one_view(const AugmentChain& chain) {
  std::size_t n_crops = 0;
  for (const AugmentStep& step : chain.geometry) {
    if (step.kind == Kind::horizontal_flip) continue;
    if (step.kind != Kind::random_crop && step.kind != Kind::center_crop) return false;
    ++n_crops;
  }
  return n_crops <= 1;
}

void make_image_chain(const AugmentOptions& options, AugmentChain& chain) {
  const std::optional<Size> size = walk(options, chain);
  if (!size)
    fail(options, "the images would differ in size", "a step that gives all the same size",
         "end with crop, centercrop or rrcrop");
  chain.layout = options.layout;
  const auto height = static_cast<std::uint64_t>(size->height);
  const auto width = static_cast<std::uint64_t>(size->width);
  if (options.layout == ChannelOrder::nchw)
    chain.output.shape = {chain.n_channels, height, width};
  else
    chain.output.shape = {height, width, chain.n_channels};
  if (chain.path != AugmentPath::pixels) return;
  chain.keeps_stored =
      chain.size && is_one_view(chain) && chain.size->height * chain.size->width <= size->height * size->width;
  const Size kept = chain.keeps_stored ? *chain.size : *size;
  chain.pixels =
      ArraySpec{DType::uint8,
                {static_cast<std::uint64_t>(kept.height), static_cast<std::uint64_t>(kept.width), chain.n_channels}};
}

}  // namespace

AugmentChain make_chain(const SetSpec& spec, const AugmentOptions& options) {
  AugmentChain chain;
  chain.output = spec.x;
  take_steps(options, chain);
  const bool is_normalized = chain.geometry.size() < options.steps.size();
  const bool is_float = core::is_floating(spec.x.dtype), is_level = spec.x.dtype == DType::uint8;
  const bool is_plain = !spec.is_encoded() && options.steps.empty(), is_id = is_plain && options.dtype == DType::int64;
  if (is_plain && options.dtype == spec.x.dtype) return chain;
  if (!is_float && !is_level && !is_plain)
    fail(options, fmt::format("steps for samples of {}", name(spec.x.dtype)), "samples of uint8 or floats",
         "leave it out");
  if (!is_id && options.dtype != DType::float32 && options.dtype != DType::bfloat16)
    fail(options, fmt::format("{} as type of the result", name(options.dtype)), "float32 or bfloat16");
  chain.output.dtype = options.dtype;
  if (is_id || (!is_float && !is_level)) return chain;
  if (!is_image(spec) && !chain.geometry.empty())
    fail(options,
         fmt::format("crops, flips or resizes of samples that are not images: {} [{}]", name(spec.x.dtype),
                     fmt::join(spec.x.shape, ", ")),
         "images: uint8 of rows, columns and channels", "leave it out, or normalize only");
  if (is_level) chain.path = AugmentPath::pixels;
  chain.n_channels = channels_of(spec);
  if (is_normalized) {
    // An array of one dimension may also be normalized per value.
    const AugmentStep& step = options.steps.back();
    if (!is_image(spec) && spec.x.shape.size() < 3 && !spec.x.shape.empty() &&
        std::max(step.mean.size(), step.stddev.size()) > 1)
      chain.n_channels = spec.x.shape.back();
    chain.mean = per_channel(options, step.mean, chain.n_channels);
    chain.stddev = per_channel(options, step.stddev, chain.n_channels);
  }
  if (!is_image(spec)) {
    chain.size = Size{1, static_cast<std::int64_t>(spec.x.n_elements() / chain.n_channels)};
    return chain;
  }
  if (!spec.is_encoded())
    chain.size = Size{static_cast<std::int64_t>(spec.x.shape[0]), static_cast<std::int64_t>(spec.x.shape[1])};
  make_image_chain(options, chain);
  return chain;
}

std::vector<Levels> levels_of(const AugmentChain& chain) {
  std::vector<Levels> channels(chain.n_channels);
  for (std::size_t c = 0; c < channels.size(); ++c)
    for (std::size_t level = 0; level < channels[c].size(); ++level) {
      const float value = static_cast<float>(level) / 255;
      channels[c][level] = chain.mean.empty() ? value : (value - chain.mean[c]) / chain.stddev[c];
    }
  return channels;
}

}  // namespace lockstep::data
