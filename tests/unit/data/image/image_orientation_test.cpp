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

}  // namespace
}  // namespace lockstep::data
