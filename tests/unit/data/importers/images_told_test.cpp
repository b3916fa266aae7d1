// What an import of images changes in each, and what of a folder it leaves out, in the words that users see.
#include <gtest/gtest.h>

#include "unit/data/image_files.hpp"
#include "unit/data/importers/fixture.hpp"

namespace lockstep::data {
namespace {

class ImagesTold : public ImporterTest {
 protected:
  void put(const std::string& name, const FileBytes& file) const {
    write(name, {reinterpret_cast<const char*>(file.data()), file.size()});
  }
  /// Returns the remarks of an import of the only image.
  std::vector<Remark> told(const ImportOptions& options) const {
    const auto source = open_images(folder_.string(), options);
    static_cast<void>(source->take_tally());
    FileBytes label(1);
    if (options.keep_encoded)
      static_cast<void>(source->read_encoded(0, 0, label));
    else
      read_split(*source);
    return source->remarks_on(source->take_tally());
  }
};

struct Changed {
  std::string name;
  FileBytes file;
  std::vector<Remark> says{};
};

const Remark in_gray = changed("in gray: each becomes RGB with three equal channels; --gray stores one channel");
const Remark with_palette = changed("with a palette: the colours of its entries are taken, not their numbers");
const Remark of_other_depth = changed("scaled to 8 bits from another depth: their white becomes 255");
const Remark with_alpha = left_out("with transparency: it is left out, colours stay as stored");
const Remark in_inks = changed("converted from CMYK, inverted as Adobe's programs write it, to RGB");
const Remark with_others =
    left_out("with more pictures in the file (MPF), such as of depth or brightness: the first is taken alone");
const Remark with_data_behind =
    left_out("with data behind the end of the picture, such as another picture: it is not read");
const Remark called_otherwise = note("in another format than the name says: the content counts");

FileBytes with_multi_picture(FileBytes jpeg) {
  const FileBytes segment = bytes_of({"\xff\xe2\x00\x06MPF\0", 8});
  jpeg.insert(jpeg.begin() + 2, segment.begin(), segment.end());
  return jpeg;
}

FileBytes with_behind(FileBytes file, const FileBytes& data) {
  file.insert(file.end(), data.begin(), data.end());
  return file;
}

std::vector<Changed> changed_images() {
  const Image colour = make_shades(8, 8, 3), gray = make_shades(8, 8, 1);
  const FileBytes pixels(64, std::byte{9}), bits{std::byte{0x1b}};
  const PngForm palette{.color_type = PNG_COLOR_TYPE_PALETTE, .bit_depth = 2, .palette = {{1, 2, 3}, {}, {}, {}}};
  return {
      {"1.png", make_png(colour)},
      {"1.JPEG", make_jpeg(colour)},
      {"1.ppm", bytes_of("P6 1 1 255 abc")},
      {"1.png", make_png(gray), {in_gray}},
      {"1.jpg", make_jpeg(gray), {in_gray}},
      {"1.pgm", bytes_of("P5 1 1 255 a"), {in_gray}},
      {"1.ppm", bytes_of("P5 1 1 255 a"), {in_gray}},
      {"1.png", make_png(bits, 1, 4, palette), {with_palette}},
      {"1.png", make_png(bits, 1, 4, {.color_type = PNG_COLOR_TYPE_GRAY, .bit_depth = 2}), {of_other_depth, in_gray}},
      {"1.png", make_png(bits, 1, 8, {.color_type = PNG_COLOR_TYPE_GRAY, .bit_depth = 1}), {of_other_depth, in_gray}},
      {"1.png", make_png(pixels, 4, 8, {.color_type = PNG_COLOR_TYPE_GRAY_ALPHA}), {in_gray, with_alpha}},
      {"1.png", make_png(pixels, 4, 4, {.color_type = PNG_COLOR_TYPE_RGB_ALPHA}), {with_alpha}},
      {"1.jpg", make_jpeg(FileBytes(256, std::byte{9}), 8, 8, TJPF_CMYK), {in_inks}},
      {"1.jpg", with_multi_picture(make_jpeg(colour)), {with_others}},
      {"1.jpg", with_behind(make_jpeg(colour), make_jpeg(gray)), {with_data_behind}},
      {"1.jpg", with_behind(make_jpeg(colour), bytes_of("\nnotes")), {with_data_behind}},
      {"1.jpg", with_behind(make_jpeg(colour), FileBytes(512)), {}},
      {"1.png", with_behind(make_png(colour), make_png(gray)), {with_data_behind}},
      {"1.png", with_behind(make_png(colour), bytes_of("PK")), {with_data_behind}},
      {"1.png", with_behind(make_png(colour), FileBytes(512)), {}},
      {"1.jpg", with_behind(with_multi_picture(make_jpeg(colour)), make_jpeg(gray)), {with_others}},
      {"1.jpg", make_png(colour), {called_otherwise}},
      {"1.png", make_jpeg(colour), {called_otherwise}},
      {"1.pgm", make_jpeg(colour), {called_otherwise}}};
}

TEST_F(ImagesTold, EachChangeOfAnImageIsCounted) {
  for (const Changed& c : changed_images()) {
    put("c/" + c.name, c.file);
    std::vector<Remark> expected;
    for (const Remark& remark : c.says)
      expected.push_back({remark.kind, "1 image " + remark.text + " (it is c/" + c.name + ")"});
    EXPECT_EQ(told({}), expected) << c.name;
    EXPECT_EQ(told({.keep_encoded = true}), expected) << c.name;
    std::erase_if(expected, [](const Remark& remark) { return remark.text.starts_with("1 image in gray"); });
    EXPECT_EQ(told({.gray = true}), expected) << c.name;
    std::filesystem::remove(path("c/" + c.name));
  }
}

TEST_F(ImagesTold, WhatAFolderHoldsBesideImagesIsCounted) {
  put("c/1.png", make_png(make_shades(4, 4, 3)));
  EXPECT_EQ(open_images(folder_.string(), {})->remarks(), std::vector<Remark>{});
  put("cafe\xcc\x81/1.png", make_png(make_shades(4, 4, 3)));
  write("c/2.webp", "RIFF....WEBPVP8 ");
  for (const char* file : {"c/3.gif", "c/notes.txt", "c/.DS_Store", "c/.ipynb_checkpoints/1.png"}) write(file, "");
  EXPECT_EQ(
      open_images(folder_.string(), {})->remarks(),
      (std::vector{left_out("1 file not named as JPEG, PNG, PPM or PGM, or not in a class folder: c/notes.txt"),
                   left_out("2 images not named as JPEG, PNG, PPM or PGM: c/2.webp (this is WebP: convert it to PNG or "
                            "JPEG), ..."),
                   left_out("2 hidden files or folders (named with a dot, or __MACOSX), 1 of them with images: "
                            "c/.ipynb_checkpoints, ..."),
                   changed("1 class name in another form of Unicode is converted to the composed form (NFC), such as "
                           "'caf\xc3\xa9'")}));
}

}  // namespace
}  // namespace lockstep::data
