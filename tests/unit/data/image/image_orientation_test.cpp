#include "data/image/image_orientation.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "unit/data/image_files.hpp"

namespace lockstep::data {
namespace {

struct Turned {
  int orientation;
  std::uint64_t height;
  std::string pixels;
};

// As Pillow's ImageOps.exif_transpose turns it.
const std::vector<Turned> turned{{1, 2, "abcdef"}, {2, 2, "cbafed"}, {3, 2, "fedcba"}, {4, 2, "defabc"},
                                 {5, 3, "adbecf"}, {6, 3, "daebfc"}, {7, 3, "fcebda"}, {8, 3, "cfbead"}};

TEST(ImageOrientation, TurnsPixelsUpright) {
  const FileBytes stored = bytes_of("abcdef");
  const FileBytes png = make_png(stored, 2, 3, {.color_type = PNG_COLOR_TYPE_GRAY});
  for (const bool is_little_endian : {true, false})
    for (const Turned& t : turned) {
      const FileBytes file = with_exif_chunk(png, make_exif(t.orientation, is_little_endian));
      const Image image = decode_image(file, 1);
      EXPECT_EQ(image.facts.orientation, t.orientation);
      EXPECT_EQ(image.height, t.height);
      EXPECT_EQ(image.width, 6 / t.height);
      EXPECT_EQ(image.pixels, bytes_of(t.pixels)) << t.orientation;
      Image kept;
      decode_image(file, {.channels = 1, .keeps_orientation = true}, kept);
      EXPECT_EQ(kept.pixels, stored);
      EXPECT_EQ(kept.facts.orientation, t.orientation);
    }
}

TEST(ImageOrientation, OfAJpegIsThatOfItsExifData) {
  const Image original = make_shades(32, 16, 3);
  const FileBytes jpeg = make_jpeg(original);
  for (const int orientation : {1, 3, 6}) {
    const FileBytes file = with_exif(jpeg, make_exif(orientation));
    const Image image = decode_image(file, 3, 8);
    EXPECT_EQ(image.facts.orientation, orientation);
    EXPECT_EQ(image.height, orientation == 6 ? 8U : 16U);
  }
  EXPECT_EQ(decode_image(jpeg, 3).facts.orientation, 1);
  const Image plain = decode_image(jpeg, 3), half_turned = decode_image(with_exif(jpeg, make_exif(3)), 3);
  const std::size_t last = plain.pixels.size() - 3;
  for (std::size_t c = 0; c < 3; ++c) EXPECT_EQ(half_turned.pixels[c], plain.pixels[last + c]);
}

TEST(ImageOrientation, IsAsStoredWhereTheTagIsNotRight) {
  const FileBytes jpeg = make_jpeg(make_shades(4, 4, 1));
  for (const int orientation : {0, 9, 255})
    EXPECT_EQ(orientation_in_jpeg(with_exif(jpeg, make_exif(orientation))), 1) << orientation;
  EXPECT_EQ(orientation_in_jpeg(with_exif(jpeg, "")), 1);
  EXPECT_EQ(orientation_in_jpeg({}), 1);
  EXPECT_EQ(orientation_in_png({}), 1);
}

TEST(ImageOrientation, NoCutAndNoFlippedByteDoesHarm) {
  const FileBytes jpeg = with_exif(make_jpeg(make_shades(4, 4, 1)), make_exif(6));
  const FileBytes png = with_exif_chunk(make_png(make_shades(4, 4, 1)), make_exif(6));
  for (FileBytes file : {jpeg, png}) {
    const auto look = [](const FileBytes& bytes) {
      for (const int found : {orientation_in_jpeg(bytes), orientation_in_png(bytes)})
        ASSERT_TRUE(found >= 1 && found <= 8);
    };
    for (std::size_t n = 0; n < file.size(); ++n) look({file.begin(), file.begin() + static_cast<std::ptrdiff_t>(n)});
    for (std::byte& byte : file)
      for (const int mask : {0x01, 0x80, 0xff}) {
        byte ^= static_cast<std::byte>(mask);
        look(file);
        byte ^= static_cast<std::byte>(mask);
      }
  }
}

}  // namespace
}  // namespace lockstep::data
