#include "data/image/image.hpp"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>
#include <thread>

#include "unit/data/image_files.hpp"

namespace lockstep::data {
namespace {

std::string reason_of(const FileBytes& file, std::uint64_t channels = 3) {
  try {
    static_cast<void>(decode_image(file, channels));
  } catch (const ImageError& error) {
    return error.reason;
  }
  return {};
}

void expect_size(const Image& image, std::uint64_t height, std::uint64_t width, std::uint64_t channels) {
  EXPECT_EQ(image.height, height);
  EXPECT_EQ(image.width, width);
  EXPECT_EQ(image.channels, channels);
  EXPECT_EQ(image.pixels.size(), height * width * channels);
}

std::array<int, 3> first_pixel(const Image& image) {
  return {std::to_integer<int>(image.pixels.at(0)), std::to_integer<int>(image.pixels.at(1)),
          std::to_integer<int>(image.pixels.at(2))};
}

TEST(Image, JpegComesBackNearlyAsItWas) {
  const Image original = make_shades(37, 53, 3);
  const Image image = decode_image(make_jpeg(original), 3);
  expect_size(image, 37, 53, 3);
  EXPECT_LE(greatest_difference(image.pixels, original.pixels), 8);
}

TEST(Image, GrayJpegGivesThreeEqualChannels) {
  const Image original = make_shades(16, 16, 1);
  const Image image = decode_image(make_jpeg(original), 3);
  expect_size(image, 16, 16, 3);
  for (std::size_t i = 0; i < image.pixels.size(); i += 3) {
    ASSERT_EQ(image.pixels[i], image.pixels[i + 1]);
    ASSERT_EQ(image.pixels[i], image.pixels[i + 2]);
    ASSERT_NEAR(std::to_integer<int>(image.pixels[i]), std::to_integer<int>(original.pixels[i / 3]), 8);
  }
}

TEST(Image, GrayOfAColourIsItsWeightedSum) {
  const std::array red{std::byte{200}, std::byte{100}, std::byte{50}};
  const int expected = 124;  // 0.299 * 200 + 0.587 * 100 + 0.114 * 50 = 124.2
  EXPECT_EQ(decode_image(make_png(red, 1, 1), 1).pixels, std::vector{std::byte{expected}});
  const Image jpeg = decode_image(make_jpeg(red, 1, 1, TJPF_RGB), 1);
  EXPECT_NEAR(std::to_integer<int>(jpeg.pixels.at(0)), expected, 2);
}

TEST(Image, JpegIsReducedAsLongAsTheShorterSideIsLongEnough) {
  const FileBytes file = make_jpeg(make_shades(160, 240, 3));
  expect_size(decode_image(file, 3, 0), 160, 240, 3);
  expect_size(decode_image(file, 3, 81), 160, 240, 3);
  expect_size(decode_image(file, 3, 80), 80, 120, 3);
  expect_size(decode_image(file, 3, 41), 80, 120, 3);
  expect_size(decode_image(file, 3, 40), 40, 60, 3);
  expect_size(decode_image(file, 3, 20), 20, 30, 3);
  expect_size(decode_image(file, 3, 1), 20, 30, 3);
}

TEST(Image, ReducedJpegShowsTheSame) {
  const Image original = make_shades(64, 96, 3);
  const Image reduced = decode_image(make_jpeg(original), 3, 32);
  FileBytes expected(32 * 48 * 3);
  resize(original.pixels, 64, 96, 3, {0, 0, 64, 96}, 32, 48, expected);
  EXPECT_LE(greatest_difference(reduced.pixels, expected), 8);
}

// Adobe's convention: ink stored inverted, so 255 is none of it.
TEST(Image, CmykJpegIsConverted) {
  FileBytes inks;
  for (int i = 0; i < 64; ++i) {
    for (const int ink : {250, 120, 60, 200}) inks.push_back(static_cast<std::byte>(ink));
  }
  const Image image = decode_image(make_jpeg(inks, 8, 8, TJPF_CMYK), 3);
  expect_size(image, 8, 8, 3);
  const std::array<int, 3> expected{250 * 200 / 255, 120 * 200 / 255, 60 * 200 / 255}, found = first_pixel(image);
  for (std::size_t c = 0; c < 3; ++c) EXPECT_NEAR(found[c], expected[c], 4);
  expect_size(decode_image(make_jpeg(inks, 8, 8, TJPF_CMYK), 1), 8, 8, 1);
}

TEST(Image, ProgressiveJpegIsDecoded) {
  const Image original = make_shades(40, 24, 3);
  const FileBytes file = make_jpeg(original.pixels, 40, 24, TJPF_RGB, TJFLAG_PROGRESSIVE);
  EXPECT_LE(greatest_difference(decode_image(file, 3).pixels, original.pixels), 8);
}

TEST(Image, PngComesBackExactly) {
  for (const int interlace : {PNG_INTERLACE_NONE, PNG_INTERLACE_ADAM7}) {
    const Image original = make_shades(19, 23, 3);
    const FileBytes file = make_png(original.pixels, 19, 23, {.interlace = interlace});
    EXPECT_EQ(decode_image(file, 3).pixels, original.pixels);
  }
  const Image gray = make_shades(9, 11, 1);
  EXPECT_EQ(decode_image(make_png(gray), 1).pixels, gray.pixels);
}

TEST(Image, PngOf16BitsIsRoundedTo8) {
  const std::array samples{std::byte{0x80}, std::byte{0x00}, std::byte{0x01}, std::byte{0xff}};  // 32768, 511
  const FileBytes file = make_png(samples, 1, 2, {.color_type = PNG_COLOR_TYPE_GRAY, .bit_depth = 16});
  EXPECT_EQ(decode_image(file, 1).pixels, (std::vector{std::byte{128}, std::byte{2}}));  // 511 / 257 = 1.99
}

std::vector<int> levels_of(const FileBytes& file, std::uint32_t white) {
  Image image;
  decode_image(file, {.channels = 1, .white = white}, image);
  std::vector<int> levels;
  for (const std::byte pixel : image.pixels) levels.push_back(std::to_integer<int>(pixel));
  return levels;
}

TEST(Image, WhiteOf16BitsIsWhatItIsSaidToBe) {
  const FileBytes samples{std::byte{3}, std::byte{0xf0}, std::byte{1}, std::byte{0xf8}};  // 1008, 504
  const FileBytes png = make_png(samples, 1, 2, {.color_type = PNG_COLOR_TYPE_GRAY, .bit_depth = 16});
  const std::string pixels{"\x03\xf0\x01\xf8", 4};
  for (const FileBytes& file : {png, bytes_of("P5 2 1 65535 " + pixels)}) {
    EXPECT_EQ(levels_of(file, 1023), (std::vector{251, 126}));
    EXPECT_EQ(levels_of(file, 65535), (std::vector{4, 2}));
    EXPECT_EQ(decode_image(file, 3).facts.highest, 1008U);
    try {
      static_cast<void>(levels_of(file, 1000));
      ADD_FAILURE() << "no ImageError";
    } catch (const ImageError& error) {
      EXPECT_EQ(error.reason, "a value of 1008, above the white of 1000");
    }
  }
  EXPECT_EQ(levels_of(bytes_of("P5 2 1 1008 " + pixels), 65535), (std::vector{255, 128})) << "the file's own white";
  EXPECT_EQ(levels_of(bytes_of("P5 2 1 15 \x0f\x05"), 65535), (std::vector{255, 85}));
}

TEST(Image, TellsWhatIsNotKept) {
  const FileBytes pixels(16, std::byte{9});
  EXPECT_TRUE(decode_image(make_png(pixels, 2, 2, {.color_type = PNG_COLOR_TYPE_RGB_ALPHA}), 3).facts.has_alpha);
  EXPECT_TRUE(decode_image(make_png(pixels, 2, 4, {.color_type = PNG_COLOR_TYPE_GRAY_ALPHA}), 3).facts.has_alpha);
  EXPECT_FALSE(decode_image(make_png(make_shades(4, 4, 3)), 1).facts.has_alpha);
  EXPECT_TRUE(decode_image(make_jpeg(FileBytes(256, std::byte{9}), 8, 8, TJPF_CMYK), 3).facts.has_inks);
}

TEST(Image, PngWithPaletteOrFewBitsIsExpanded) {
  const std::array indices{std::byte{0x1b}};  // 0, 1, 2, 3 in two bits each
  const PngForm form{.color_type = PNG_COLOR_TYPE_PALETTE,
                     .bit_depth = 2,
                     .palette = {{1, 2, 3}, {10, 20, 30}, {100, 110, 120}, {255, 0, 7}}};
  const std::vector<int> expected{1, 2, 3, 10, 20, 30, 100, 110, 120, 255, 0, 7};
  const Image image = decode_image(make_png(indices, 1, 4, form), 3);
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(std::to_integer<int>(image.pixels.at(i)), expected[i]);

  const FileBytes gray = make_png(indices, 1, 4, {.color_type = PNG_COLOR_TYPE_GRAY, .bit_depth = 2});
  EXPECT_EQ(decode_image(gray, 1).pixels, (std::vector{std::byte{0}, std::byte{85}, std::byte{170}, std::byte{255}}));
}

TEST(Image, TransparencyOfPngIsLeftOut) {
  const std::array rgba{std::byte{9}, std::byte{99}, std::byte{199}, std::byte{0}};
  const FileBytes file = make_png(rgba, 1, 1, {.color_type = PNG_COLOR_TYPE_RGB_ALPHA});
  EXPECT_EQ(first_pixel(decode_image(file, 3)), (std::array{9, 99, 199}));
}

TEST(Image, PnmHeadersMayHaveComments) {
  const Image image = decode_image(bytes_of("P6 # a comment 7 7\n2#width\n \t1\n# one more\n255\nabcdef"), 3);
  expect_size(image, 1, 2, 3);
  EXPECT_EQ(image.pixels, bytes_of("abcdef"));
  EXPECT_EQ(decode_image(bytes_of("P5 3 1 255 \n#9"), 1).pixels, bytes_of("\n#9"));
  EXPECT_EQ(decode_image(bytes_of("P5 1 1 255 a"), 3).pixels, bytes_of("aaa"));
}

TEST(Image, WrongPnmIsRefusedWithItsReason) {
  EXPECT_NE(reason_of(bytes_of("P6 2 1 255 abcde")).find("5 bytes of pixels, expected 6"), std::string::npos);
  EXPECT_NE(reason_of(bytes_of("P6 2 1 255 abcdefg")).find("7 bytes of pixels, expected 6"), std::string::npos);
  EXPECT_NE(reason_of(bytes_of("P5 2 1 65536 abcd")).find("65536, expected 1 to 65535"), std::string::npos);
  EXPECT_NE(reason_of(bytes_of("P5 x 1 255 a")).find("no width"), std::string::npos);
  EXPECT_NE(reason_of(bytes_of("P5 1 # 1 255 a")).find("no height"), std::string::npos);
  EXPECT_NE(reason_of(bytes_of("P5 99999999999999999999 1 255 a")).find("width is too large"), std::string::npos);
  EXPECT_NE(reason_of(bytes_of("P5 100000000 100000000 255 a")).find("100000000 x 100000000"), std::string::npos);
  EXPECT_NE(reason_of(bytes_of("P5 0 1 255 ")).find("without pixels"), std::string::npos);
  EXPECT_NE(reason_of(bytes_of("P5 1 1 255")).find("no end"), std::string::npos);
  EXPECT_NE(reason_of(bytes_of("P5 1 1 255x")).find("no end"), std::string::npos);
}

TEST(Image, OtherFilesAreNoImages) {
  EXPECT_EQ(reason_of({}), "an empty file");
  EXPECT_NE(reason_of(bytes_of("hello")).find("not an image"), std::string::npos);
  EXPECT_NE(reason_of(bytes_of("\x89PNG\n\x1a\n")).find("damaged PNG"), std::string::npos);
  EXPECT_EQ(reason_of(bytes_of("GIF89a...")), "this is GIF: convert it to PNG or JPEG");
  EXPECT_EQ(reason_of(bytes_of("RIFFabcdWEBPVP8 ")), "this is WebP: convert it to PNG or JPEG");
  for (const char* brand : {"heic", "heix", "hevc", "mif1", "msf1"})
    EXPECT_EQ(reason_of(bytes_of("....ftyp" + std::string{brand})), "this is HEIC: convert it to PNG or JPEG");
  EXPECT_EQ(reason_of(bytes_of("....ftypavif")), "this is AVIF: convert it to PNG or JPEG");
  EXPECT_EQ(reason_of(bytes_of("....ftypisom")), "this is a video (MP4): write its frames as PNG or JPEG");
  EXPECT_EQ(reason_of(bytes_of("P2 1 1 255 7")), "this is PGM as text: write it as binary PGM (P5), or as PNG");
  EXPECT_NE(reason_of(bytes_of("version https://git-lfs.github.com/spec/v1\n")).find("git lfs pull"),
            std::string::npos);
}

TEST(Image, EveryTruncationIsAnError) {
  const Image original = make_shades(12, 10, 3);
  const FileBytes pnm = bytes_of("P6 2 2 255 abcdefghijkl");
  const FileBytes progressive = make_jpeg(original.pixels, 12, 10, TJPF_RGB, TJFLAG_PROGRESSIVE);
  for (const FileBytes& file : {make_jpeg(original), progressive, make_png(original), pnm}) {
    ASSERT_EQ(reason_of(file), "");
    for (std::size_t n = 0; n < file.size(); ++n) {
      ASSERT_NE(reason_of({file.begin(), file.begin() + static_cast<std::ptrdiff_t>(n)}), "") << n << " bytes";
    }
  }
}

TEST(Image, EveryFlippedByteOfAPngIsAnError) {
  FileBytes file = make_png(make_shades(7, 5, 3));
  for (std::byte& byte : file) {
    for (const int mask : {0x01, 0x20, 0x80, 0xff}) {
      byte ^= static_cast<std::byte>(mask);
      EXPECT_NE(reason_of(file), "") << "byte " << &byte - file.data() << ", mask " << mask;
      byte ^= static_cast<std::byte>(mask);
    }
  }
  EXPECT_EQ(reason_of(file), "");
}

// JPEG has no check sums: some flips give other pixels. A whole image or an error, nothing else.
TEST(Image, NoFlippedByteOfAJpegDoesHarm) {
  const Image original = make_shades(16, 24, 3);
  int n_refused = 0;
  for (const int flags : {0, TJFLAG_PROGRESSIVE}) {
    FileBytes file = make_jpeg(original.pixels, 16, 24, TJPF_RGB, flags);
    for (std::byte& byte : file) {
      for (const int mask : {0x01, 0x10, 0xff}) {
        byte ^= static_cast<std::byte>(mask);
        try {
          const Image image = decode_image(file, 3);
          EXPECT_EQ(image.pixels.size(), image.height * image.width * 3);
        } catch (const ImageError& error) {
          EXPECT_FALSE(error.reason.empty());
          ++n_refused;
        }
        byte ^= static_cast<std::byte>(mask);
      }
    }
    EXPECT_LE(greatest_difference(decode_image(file, 3).pixels, original.pixels), 8);  // no state is left behind
  }
  EXPECT_GT(n_refused, 100);
}

TEST(Image, ThreadsDecodeAtOnce) {
  const Image original = make_shades(32, 32, 3);
  const std::array files{make_jpeg(original), make_png(original)};
  const std::array expected{decode_image(files[0], 3).pixels, decode_image(files[1], 3).pixels};
  std::array<int, 4> n_right{};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < n_right.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) n_right[t] += decode_image(files[t % 2], 3).pixels == expected[t % 2] ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int n : n_right) EXPECT_EQ(n, 50);
}

}  // namespace
}  // namespace lockstep::data
