#include "data/augment/augment.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <thread>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "data/augment/augment_geometry.hpp"
#include "data/image/image.hpp"

namespace lockstep::data {
namespace {

using core::DType;

/// An image that is really made at every step, one pixel at a time: what the chain is compared with.
struct Plain {
  Size size;
  std::size_t n_channels = 0;
  std::vector<std::byte> pixels{};

  Plain(Size of, std::size_t channels)
      : size{of}, n_channels{channels}, pixels(static_cast<std::size_t>(of.height * of.width) * channels) {}

  [[nodiscard]] std::byte& at(std::int64_t y, std::int64_t x, std::size_t c) {
    return pixels[static_cast<std::size_t>(y * size.width + x) * n_channels + c];
  }

  template <class F>
  [[nodiscard]] Plain moved(Size to, F&& from) {
    Plain result{to, n_channels};
    for (std::int64_t y = 0; y < to.height; ++y)
      for (std::int64_t x = 0; x < to.width; ++x) {
        const auto [source_y, source_x] = from(y, x);
        if (source_y < 0 || source_x < 0 || source_y >= size.height || source_x >= size.width) continue;
        for (std::size_t c = 0; c < n_channels; ++c) result.at(y, x, c) = at(source_y, source_x, c);
      }
    return result;
  }

  [[nodiscard]] Plain cropped(const Rect& part) {
    return moved(part.size(), [&](auto y, auto x) { return std::pair{y + part.top, x + part.left}; });
  }
  [[nodiscard]] Plain flipped() {
    return moved(size, [&](auto y, auto x) { return std::pair{y, size.width - 1 - x}; });
  }
  [[nodiscard]] Plain resized(Size to) {
    Plain result{to, n_channels};
    resize(pixels, static_cast<std::uint64_t>(size.height), static_cast<std::uint64_t>(size.width), n_channels,
           {0, 0, static_cast<double>(size.height), static_cast<double>(size.width)},
           static_cast<std::uint64_t>(to.height), static_cast<std::uint64_t>(to.width), result.pixels);
    return result;
  }
};

Plain some_image(std::int64_t height, std::int64_t width, std::size_t n_channels, std::uint64_t seed = 7) {
  Plain image{{height, width}, n_channels};
  core::Random random{seed};
  for (std::byte& pixel : image.pixels) pixel = static_cast<std::byte>(random.below(256));
  return image;
}

SetSpec spec_of(const Plain& image) {
  SetSpec spec;
  spec.x.shape = {static_cast<std::uint64_t>(image.size.height), static_cast<std::uint64_t>(image.size.width),
                  image.n_channels};
  return spec;
}

Plain plain_steps(Plain image, const AugmentOptions& options, std::uint64_t epoch, std::uint64_t id) {
  for (std::size_t i = 0; i < options.steps.size(); ++i) {
    const AugmentStep& step = options.steps[i];
    core::Random random = draws_of(options.seed, epoch, id, i);
    const Size wanted{static_cast<std::int64_t>(step.height), static_cast<std::int64_t>(step.width)};
    switch (step.kind) {
      case AugmentStep::Kind::random_crop: image = image.cropped(random_crop(step, image.size, random)); break;
      case AugmentStep::Kind::horizontal_flip:
        if (random.uniform() < step.probability) image = image.flipped();
        break;
      case AugmentStep::Kind::random_resized_crop:
        image = image.cropped(random_resized_crop(step, image.size, random)).resized(wanted);
        break;
      case AugmentStep::Kind::resize: image = image.resized(resized(step, image.size)); break;
      case AugmentStep::Kind::center_crop: image = image.cropped(center_crop(step, image.size)); break;
      case AugmentStep::Kind::normalize: break;
    }
  }
  return image;
}

template <class T>
std::vector<T> apply(const Augment& augment, const Plain& image, std::uint64_t epoch, std::uint64_t id) {
  std::vector<T> out(augment.output().n_elements());
  std::vector<std::byte> scratch(augment.scratch_bytes());
  augment.apply(image.pixels, static_cast<std::uint64_t>(image.size.height),
                static_cast<std::uint64_t>(image.size.width), epoch, id, std::as_writable_bytes(std::span{out}),
                scratch);
  return out;
}

template <class T>
class Chain : public testing::Test {};
using Results = testing::Types<float, core::bfloat16>;
TYPED_TEST_SUITE(Chain, Results);

constexpr const char* chains[] = {"",
                                  "flip:1",
                                  "crop:9",
                                  "crop:12x17:3,flip",
                                  "flip,crop:12:2,flip,crop:9",
                                  "centercrop:9",
                                  "centercrop:20x5",
                                  "centercrop:5,crop:12:4",
                                  "centercrop:6,crop:15:5,resize:9,flip",
                                  "resize:8",
                                  "resize:24x7,centercrop:6",
                                  "rrcrop:8,flip",
                                  "flip,rrcrop:10x6"};

// Resizing a mirrored image instead of mirroring the resized one may round differently, by one level.
TYPED_TEST(Chain, EqualsStepsMadeOneAfterAnother) {
  const std::vector<double> mean{0.4, 0.5, 0.6}, stddev{0.2, 0.3, 0.4};
  const Plain image = some_image(13, 16, 3);
  for (const std::string text : chains)
    for (const ChannelOrder layout : {ChannelOrder::nchw, ChannelOrder::nhwc})
      for (std::uint64_t id = 0; id < 12; ++id) {
        AugmentOptions options;
        options.steps = parse_augment(text, "--augment");
        const AugmentOptions geometry = options;
        AugmentStep normalize;
        normalize.mean = mean;
        normalize.stddev = stddev;
        options.steps.push_back(normalize);
        options.layout = layout;
        options.dtype = std::is_same_v<TypeParam, float> ? DType::float32 : DType::bfloat16;
        const Augment augment{spec_of(image), options};
        const auto found = apply<TypeParam>(augment, image, 3, id);
        Plain expected = plain_steps(image, geometry, 3, id);
        const auto& shape = augment.output().shape;
        const auto h = static_cast<std::uint64_t>(expected.size.height),
                   w = static_cast<std::uint64_t>(expected.size.width);
        ASSERT_EQ(shape, (layout == ChannelOrder::nchw ? std::vector<std::uint64_t>{3, h, w}
                                                       : std::vector<std::uint64_t>{h, w, 3}));
        const int tolerance = text == "flip,rrcrop:10x6" ? 1 : 0;
        for (std::uint64_t y = 0; y < h; ++y)
          for (std::uint64_t x = 0; x < w; ++x)
            for (std::size_t c = 0; c < 3; ++c) {
              const std::size_t place = layout == ChannelOrder::nchw ? (c * h + y) * w + x : (y * w + x) * 3 + c;
              const int level =
                  std::to_integer<int>(expected.at(static_cast<std::int64_t>(y), static_cast<std::int64_t>(x), c));
              bool is_equal = false;
              for (int near = level - tolerance; near <= level + tolerance; ++near) {
                const float value =
                    (static_cast<float>(near) / 255 - static_cast<float>(mean[c])) / static_cast<float>(stddev[c]);
                is_equal =
                    is_equal || static_cast<float>(static_cast<TypeParam>(value)) == static_cast<float>(found[place]);
              }
              ASSERT_TRUE(is_equal) << text << ", sample " << id << ", pixel " << y << ", " << x << ", channel " << c;
            }
      }
}

TEST(Augment, IsAFunctionOfSeedEpochAndSample) {
  const Plain image = some_image(32, 32, 3);
  AugmentOptions options;
  options.steps = parse_augment("crop:32:4,flip,normalize:0.5:0.25", "--augment");
  const Augment augment{spec_of(image), options};
  options.seed = 2;
  const Augment other{spec_of(image), options};
  std::vector<std::vector<float>> in_order;
  for (std::uint64_t id = 0; id < 64; ++id) in_order.push_back(apply<float>(augment, image, 1, id));
  std::vector<std::vector<float>> by_threads(64);
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (std::uint64_t id = 64; id-- > 0;)
        if (id % 4 == t) by_threads[id] = apply<float>(augment, image, 1, id);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(in_order, by_threads);
  int n_other_epoch = 0, n_other_seed = 0, n_other_sample = 0;
  for (std::uint64_t id = 0; id < 64; ++id) {
    n_other_epoch += apply<float>(augment, image, 2, id) != in_order[id];
    n_other_seed += apply<float>(other, image, 1, id) != in_order[id];
    n_other_sample += in_order[(id + 1) % 64] != in_order[id];
  }
  EXPECT_GT(n_other_epoch, 50);
  EXPECT_GT(n_other_seed, 50);
  EXPECT_GT(n_other_sample, 50);
}

TEST(Augment, PixelsBecomeSharesOf255) {
  Plain image{{2, 2}, 1};
  image.pixels = {std::byte{0}, std::byte{51}, std::byte{255}, std::byte{102}};
  SetSpec spec;
  spec.x.shape = {2, 2};
  const Augment augment{spec, {}};
  EXPECT_EQ(augment.output(), (ArraySpec{DType::float32, {1, 2, 2}}));
  EXPECT_EQ(apply<float>(augment, image, 0, 0), (std::vector<float>{0, 0.2f, 1, 0.4f}));
}

TEST(Augment, KeepsTheShapeOfWhatIsNoImage) {
  const auto output = [](DType dtype, std::vector<std::uint64_t> shape, std::string_view steps, DType wanted) {
    SetSpec spec;
    spec.x = {dtype, std::move(shape)};
    AugmentOptions options;
    options.steps = parse_augment(steps, "--augment");
    options.dtype = wanted;
    return Augment{spec, options}.output();
  };
  EXPECT_EQ(output(DType::uint8, {784}, "normalize:0.5:0.5", DType::float32), (ArraySpec{DType::float32, {784}}));
  EXPECT_EQ(output(DType::uint8, {2, 3, 4, 5}, "", DType::bfloat16), (ArraySpec{DType::bfloat16, {2, 3, 4, 5}}));
  EXPECT_EQ(output(DType::int64, {2}, "", DType::float32), (ArraySpec{DType::float32, {2}}));
  EXPECT_EQ(output(DType::uint8, {2}, "", DType::int64), (ArraySpec{DType::int64, {2}}));
  EXPECT_EQ(output(DType::uint8, {8, 8, 3}, "", DType::uint8), (ArraySpec{DType::uint8, {8, 8, 3}}));
}

TEST(Augment, NormalizesStoredFloatsByChannel) {
  SetSpec spec;
  spec.x = {DType::float64, {1, 3, 2}};
  AugmentOptions options;
  options.steps = parse_augment("normalize:1/2:2/4", "--augment");
  const Augment augment{spec, options};
  const std::vector<double> x{1, 2, 3, 6, -1, 10};
  std::vector<float> out(x.size());
  augment.apply(std::as_bytes(std::span{x}), 0, 0, 0, 0, std::as_writable_bytes(std::span{out}), {});
  EXPECT_EQ(out, (std::vector<float>{0, 0, 1, 1, -1, 2}));
}

TEST(Augment, PassesOnWhatIsStored) {
  SetSpec spec;
  spec.x = {DType::int64, {2}};
  const Augment augment{spec, {.dtype = DType::int64}};
  EXPECT_TRUE(augment.is_identity());
  const std::vector<std::int64_t> x{std::int64_t{1} << 60, -3};
  std::vector<std::int64_t> out(2);
  augment.apply(std::as_bytes(std::span{x}), 0, 0, 0, 0, std::as_writable_bytes(std::span{out}), {});
  EXPECT_EQ(out, x);
}

TEST(Augment, EncodedImagesOfAnySizeComeOutInOne) {
  SetSpec spec;
  spec.encoding = "image";
  AugmentOptions options;
  options.steps = parse_augment("resize:12,centercrop:10", "--augment");
  const Augment augment{spec, options};
  EXPECT_EQ(augment.output().shape, (std::vector<std::uint64_t>{3, 10, 10}));
  // The longest one needs more memory than scratch_bytes() foresees.
  for (const auto& [height, width] : {std::pair{24, 36}, {11, 12}, {12, 400}}) {
    const Plain image = some_image(height, width, 3);
    Plain expected = plain_steps(image, options, 0, 5);
    const auto found = apply<float>(augment, image, 0, 5);
    for (std::size_t i = 0; i < 300; ++i)
      ASSERT_EQ(found[i], static_cast<float>(expected.at(static_cast<std::int64_t>(i % 100 / 10),
                                                         static_cast<std::int64_t>(i % 10), i / 100)) /
                              255);
  }
  options.steps = parse_augment("crop:20:2", "--augment");
  EXPECT_THROW(apply<float>(Augment{spec, options}, some_image(24, 15, 3), 0, 0), core::Error);
  EXPECT_NO_THROW(apply<float>(Augment{spec, options}, some_image(24, 16, 3), 0, 0));
}

/// The message of what is refused for images of 8x8x3 (or another shape).
std::string refusal(std::string_view steps, std::vector<std::uint64_t> shape = {8, 8, 3}, DType dtype = DType::uint8,
                    DType wanted = DType::float32) {
  SetSpec spec;
  spec.x = {dtype, std::move(shape)};
  if (spec.x.shape.empty()) spec.encoding = "image";
  AugmentOptions options;
  options.dtype = wanted;
  try {
    options.steps = parse_augment(steps, "--augment");
    const Augment augment{spec, options};
  } catch (const core::Error& error) {
    EXPECT_EQ(error.code(), core::ExitCode::usage);
    return error.what();
  }
  return "accepted";
}

TEST(Augment, RefusesWhatCannotFollow) {
  const std::map<std::string, std::string> by_steps{
      {"crop:9", "a crop of 9x9 from images of 8x8"},
      {"crop:8x13:2", "a crop of 8x13"},
      {"resize:4,crop:5", "from images of 4x4"},
      {"normalize:0.5:0.5,flip", "a step after normalize"},
      {"normalize:0.1/0.2:1",
       "normalize has 2 values for samples of 3 channels (augment)\n  expected: one value, or 3 separated by"},
      {"crop:8:1,crop:4,resize:16x12,centercrop:30,crop:30", "accepted"}};
  for (const auto& [steps, message] : by_steps)
    EXPECT_NE(refusal(steps).find(message), std::string::npos) << refusal(steps);
  EXPECT_NE(refusal("flip", {64}).find("samples that are not images"), std::string::npos);
  EXPECT_NE(refusal("flip", {8, 8, 3}, DType::float32).find("samples that are not images"), std::string::npos);
  EXPECT_NE(refusal("normalize:0:1", {8}, DType::int32).find("samples of int32"), std::string::npos);
  EXPECT_NE(refusal("flip", {8, 8, 3}, DType::uint8, DType::uint8).find("float32 or bfloat16"), std::string::npos);
  EXPECT_NE(refusal("resize:4", {8, 8, 4}).find("4 channels"), std::string::npos);
  EXPECT_NE(refusal("resize:32", {}).find("differ in size"), std::string::npos);
  EXPECT_NE(refusal("", {}).find("differ in size"), std::string::npos);
}

TEST(ParseAugment, NamesFlagStepAndForm) {
  const std::map<std::string, std::string> by_text{{"crpo:32", "did you mean 'crop'?"},
                                                   {"crop", "crop:SIZE[:PADDING]"},
                                                   {"crop:0", "pixels from 1 to 65535"},
                                                   {"crop:32x", "pixels from 1"},
                                                   {"crop:1x2x3", "HEIGHTxWIDTH"},
                                                   {"crop:32:-1", "pixels from 0"},
                                                   {"crop:32:4:4", "3 arguments"},
                                                   {"flip:1.5", "a probability from 0 to 1"},
                                                   {"flip:nan", "a probability from 0 to 1"},
                                                   {"flip,,flip", "unknown ''"},
                                                   {"normalize:0.5", "normalize:MEAN:STD"},
                                                   {"normalize:0.5:0", "standard deviations above 0"},
                                                   {"normalize:a:1", "'a'"},
                                                   {"normalize:inf:1", "'inf'"},
                                                   {"normalize:1/2:1/2/3", "2 means and 3 standard deviations"},
                                                   {"resize:99999999999999999999", "pixels from 1"}};
  for (const auto& [text, message] : by_text) {
    const std::string found = refusal(text);
    EXPECT_NE(found.find(message), std::string::npos) << found;
    EXPECT_NE(found.find("--augment"), std::string::npos) << found;
  }
}

TEST(ParseAugment, ReadsAllForms) {
  const auto steps = parse_augment("crop:32:4,flip:0.25,rrcrop:8x9,resize:7,normalize:0.5:1/2/3", "--augment");
  ASSERT_EQ(steps.size(), 5u);
  EXPECT_EQ(steps[0].kind, AugmentStep::Kind::random_crop);
  EXPECT_EQ((std::vector{steps[0].height, steps[0].width, steps[0].padding}), (std::vector<std::uint64_t>{32, 32, 4}));
  EXPECT_EQ(steps[1].probability, 0.25);
  EXPECT_EQ((std::vector{steps[2].height, steps[2].width}), (std::vector<std::uint64_t>{8, 9}));
  EXPECT_EQ((std::vector{steps[3].height, steps[3].width}), (std::vector<std::uint64_t>{7, 0}));
  EXPECT_EQ(steps[4].mean, std::vector<double>{0.5});
  EXPECT_EQ(steps[4].stddev, (std::vector<double>{1, 2, 3}));
  EXPECT_TRUE(parse_augment("", "--augment").empty());
}

AugmentStep step_of(std::string_view text) { return parse_augment(text, "--augment").front(); }

TEST(Geometry, RandomCropsReachEveryPlaceEquallyOften) {
  const AugmentStep step = step_of("crop:4:1");
  std::map<std::pair<std::int64_t, std::int64_t>, int> counts;
  for (std::uint64_t id = 0; id < 9000; ++id) {
    core::Random random = draws_of(1, 0, id, 0);
    const Rect part = random_crop(step, {4, 4}, random);
    ++counts[{part.top, part.left}];
  }
  ASSERT_EQ(counts.size(), 9u);
  for (const auto& [place, n] : counts) {
    EXPECT_LE(std::max(std::abs(place.first), std::abs(place.second)), 1);
    EXPECT_NEAR(n, 1000, 150);
  }
}

TEST(Geometry, RandomResizedCropsHaveTheAreasAndAspectsAskedFor) {
  const AugmentStep step = step_of("rrcrop:224");
  constexpr int n = 4000;
  const Size image{1000, 1000};
  double sum_of_shares = 0, sum_of_log_aspects = 0;
  for (std::uint64_t id = 0; id < n; ++id) {
    core::Random random = draws_of(1, 0, id, 0);
    const Rect part = random_resized_crop(step, image, random);
    ASSERT_EQ(intersection(part, {0, 0, image.height, image.width}), part);
    const double share = static_cast<double>(part.height * part.width) / 1e6;
    const double aspect = static_cast<double>(part.width) / static_cast<double>(part.height);
    ASSERT_GT(share, 0.079);
    ASSERT_GT(aspect, 0.74);
    ASSERT_LT(aspect, 1.35);
    sum_of_shares += share;
    sum_of_log_aspects += std::log(aspect);
  }
  // A share s fits with probability min(1, -log(s) / log(4/3)): weighted so, shares from 0.08 on have mean 0.478.
  EXPECT_NEAR(sum_of_shares / n, 0.478, 0.012);
  EXPECT_NEAR(sum_of_log_aspects / n, 0, 0.02);
}

TEST(Geometry, RandomResizedCropsOfLongImagesFallBackToTheMiddle) {
  AugmentStep step = step_of("rrcrop:8");
  step.scale = {1, 1};
  core::Random random{1};
  EXPECT_EQ(random_resized_crop(step, {10, 1000}, random), (Rect{0, 493, 10, 13}));
  EXPECT_EQ(random_resized_crop(step, {1000, 10}, random), (Rect{493, 0, 13, 10}));
}

TEST(Geometry, CentreAndSizesAreTorchvisions) {
  EXPECT_EQ(center_crop(step_of("centercrop:4"), {7, 9}), (Rect{2, 2, 4, 4}));  // 1.5 and 2.5 go to even
  EXPECT_EQ(center_crop(step_of("centercrop:8"), {5, 8}), (Rect{-1, 0, 8, 8}));
  EXPECT_EQ(resized(step_of("resize:256"), {375, 500}), (Size{256, 341}));
  EXPECT_EQ(resized(step_of("resize:256"), {500, 375}), (Size{341, 256}));
  EXPECT_EQ(resized(step_of("resize:10x20"), {500, 375}), (Size{10, 20}));
}

}  // namespace
}  // namespace lockstep::data
