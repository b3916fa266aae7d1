#include "data/image/image_metadata.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "unit/data/image_files.hpp"

namespace lockstep::data {
namespace {

ImageFacts of_jpeg(const FileBytes& file) {
  ImageFacts facts;
  look_into_jpeg(file, facts);
  return facts;
}

ImageFacts of_png(const FileBytes& file) {
  ImageFacts facts;
  look_into_png(file, facts);
  return facts;
}

TEST(ImageMetadata, OrientationOfAJpegIsThatOfItsExifData) {
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

TEST(ImageMetadata, OrientationIsAsStoredWhereTheTagIsNotRight) {
  const FileBytes jpeg = make_jpeg(make_shades(4, 4, 1));
  for (const int orientation : {0, 9, 255})
    EXPECT_EQ(of_jpeg(with_exif(jpeg, make_exif(orientation))).orientation, 1) << orientation;
  EXPECT_EQ(of_jpeg(with_exif(jpeg, "")).orientation, 1);
  EXPECT_EQ(of_jpeg({}).orientation, 1);
  EXPECT_EQ(of_png({}).orientation, 1);
}

/// A JPEG with one more segment behind its first marker.
FileBytes with_segment(const FileBytes& jpeg, char marker, const std::string& payload) {
  const std::size_t length = payload.size() + 2;
  const FileBytes segment =
      bytes_of(std::string{'\xff', marker, static_cast<char>(length >> 8), static_cast<char>(length & 0xff)} + payload);
  FileBytes file = jpeg;
  file.insert(file.begin() + 2, segment.begin(), segment.end());
  return file;
}

std::string xmp_of(const std::string& text) { return std::string{"http://ns.adobe.com/xap/1.0/\0", 29} + text; }

// As Pillow's exif_transpose has it.
TEST(ImageMetadata, OrientationOfXmpIsTakenWhereExifHasNone) {
  const FileBytes jpeg = make_jpeg(make_shades(4, 4, 1));
  const auto with_xmp = [](const FileBytes& file, const std::string& text) {
    return with_segment(file, '\xe1', xmp_of(text));
  };
  for (const char* six :
       {"<x tiff:Orientation=\"6\"/>", "<x tiff:Orientation='6'/>", "<tiff:Orientation>6</tiff:Orientation>"})
    EXPECT_EQ(of_jpeg(with_xmp(jpeg, six)).orientation, 6) << six;
  for (const char* none : {"", "tiff:Orientation", "tiff:Orientation=\"", "tiff:Orientation=\"6",
                           "tiff:Orientation=\"9\"", "tiff:Orientation=\"66\"", "exif:Orientation=\"6\""})
    EXPECT_EQ(of_jpeg(with_xmp(jpeg, none)).orientation, 1) << none;
  const std::string eight = "<x tiff:Orientation=\"8\"/>";
  const ImageFacts both = of_jpeg(with_xmp(with_exif(jpeg, make_exif(3)), eight));
  EXPECT_EQ(both.orientation, 3);
  EXPECT_TRUE(both.has_other_orientation);
  const ImageFacts same = of_jpeg(with_xmp(with_exif(jpeg, make_exif(8)), eight));
  EXPECT_EQ(same.orientation, 8);
  EXPECT_FALSE(same.has_other_orientation);
  EXPECT_EQ(of_jpeg(with_xmp(with_exif(jpeg, make_exif(0)), eight)).orientation, 8) << "EXIF has none that is right";
  const FileBytes png = make_png(make_shades(4, 4, 1));
  const std::string key{"XML:com.adobe.xmp\0\0\0\0\0", 22};
  EXPECT_EQ(of_png(with_chunk(png, "iTXt", key + eight)).orientation, 8);
  EXPECT_EQ(decode_image(with_chunk(png, "iTXt", key + eight), 1).facts.orientation, 8);
  EXPECT_EQ(of_png(with_exif_chunk(with_chunk(png, "iTXt", key + eight), make_exif(6))).orientation, 6);
}

TEST(ImageMetadata, ProfilesAndGammaAreSeen) {
  const FileBytes jpeg = make_jpeg(make_shades(4, 4, 3)), png = make_png(make_shades(4, 4, 3));
  EXPECT_FALSE(decode_image(jpeg, 3).facts.has_profile);
  EXPECT_FALSE(decode_image(png, 3).facts.has_profile);
  const std::string icc{"ICC_PROFILE\0\1\1", 14};
  EXPECT_TRUE(decode_image(with_segment(jpeg, '\xe2', icc + "profile"), 3).facts.has_profile);
  const ImageFacts stereo = decode_image(with_segment(jpeg, '\xe2', {"MPF\0II*", 7}), 3).facts;
  EXPECT_FALSE(stereo.has_profile);
  EXPECT_TRUE(stereo.has_more_pictures);
  EXPECT_FALSE(decode_image(with_segment(jpeg, '\xe2', "MPF"), 3).facts.has_more_pictures);
  const auto gamma = [&](const std::string& value) {
    return decode_image(with_chunk(png, "gAMA", value, ChunkPlace::first), 3).facts.has_gamma;
  };
  EXPECT_FALSE(gamma({"\0\0\xb1\x8f", 4})) << "that of sRGB, 45455";
  EXPECT_TRUE(gamma({"\0\1\x86\xa0", 4})) << "linear, 100000";
  EXPECT_TRUE(gamma({"\0\0\xd9\x03", 4})) << "that of old Macs, 55555";
  const FileBytes srgb = with_chunk(png, "sRGB", std::string{"\0", 1}, ChunkPlace::first);
  EXPECT_FALSE(decode_image(srgb, 3).facts.has_gamma);
}

// Segments between scans may have the bytes of an end in them.
TEST(ImageMetadata, DataBehindThePictureIsSeen) {
  const std::string begin{"\xff\xd8\xff\xe0\0\x04\xff\xd9\xff\xda\0\x03\x01", 13},
      scan{"ab\xff\0\xff\xd0z\xff\xff\xc4\0\x04\xff\xd9\xff\xda\0\x02yx", 20}, end = "\xff\xd9";
  const auto is_seen = [&](const std::string& text) { return of_jpeg(bytes_of(text)).has_data_behind; };
  for (const std::string& whole : {begin + end, begin + scan + end, begin + scan + scan + end}) {
    EXPECT_FALSE(is_seen(whole));
    EXPECT_FALSE(is_seen(whole + std::string(9, '\0')));
    EXPECT_TRUE(is_seen(whole + std::string(9, '\0') + "x"));
    EXPECT_TRUE(is_seen(whole + whole));
    for (std::size_t n = 0; n < whole.size(); ++n) EXPECT_FALSE(is_seen(whole.substr(0, n))) << n;
  }
}

// Chunks behind the end do not count.
TEST(ImageMetadata, DataBehindTheEndOfAPngIsSeen) {
  const FileBytes whole = make_png(make_shades(4, 4, 1)), turned = with_exif_chunk(whole, make_exif(6));
  const auto behind = [&](const FileBytes& data) {
    FileBytes file = whole;
    file.insert(file.end(), data.begin(), data.end());
    return file;
  };
  EXPECT_FALSE(decode_image(whole, 1).facts.has_data_behind);
  EXPECT_FALSE(of_png(behind(FileBytes(512))).has_data_behind);
  for (const FileBytes& data : {bytes_of("x"), bytes_of({"\0\0\0\0\0\0\0\0\0\0\0\0x", 13}), whole, turned,
                                FileBytes{turned.begin() + 8, turned.end()}}) {
    EXPECT_TRUE(decode_image(behind(data), 1).facts.has_data_behind);
    EXPECT_EQ(of_png(behind(data)).orientation, 1);
  }
  for (std::size_t n = 0; n < whole.size(); ++n)
    EXPECT_FALSE(of_png({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n)}).has_data_behind) << n;
}

TEST(ImageMetadata, FewerBitsAndAnimationsAreSeen) {
  const FileBytes png = make_png(make_shades(4, 4, 3));
  const auto bits = [&](const std::string& value) {
    return decode_image(with_chunk(png, "sBIT", value, ChunkPlace::first), 3).facts.has_fewer_bits;
  };
  EXPECT_FALSE(bits("\x08\x08\x08"));
  EXPECT_TRUE(bits("\x05\x06\x05"));
  EXPECT_FALSE(decode_image(png, 3).facts.is_animated);
  EXPECT_TRUE(decode_image(with_chunk(png, "acTL", {"\0\0\0\2\0\0\0\0", 8}, ChunkPlace::first), 3).facts.is_animated);
}

TEST(ImageMetadata, NoCutAndNoFlippedByteDoesHarm) {
  const FileBytes jpeg = with_segment(with_exif(make_jpeg(make_shades(4, 4, 1)), make_exif(6)), '\xe1',
                                      xmp_of("<x tiff:Orientation=\"8\"/>"));
  const FileBytes png = with_exif_chunk(make_png(make_shades(4, 4, 1)), make_exif(6));
  for (FileBytes file : {jpeg, png}) {
    const auto look = [](const FileBytes& bytes) {
      for (const int found : {of_jpeg(bytes).orientation, of_png(bytes).orientation})
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
