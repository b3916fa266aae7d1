#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "unit/data/image_files.hpp"
#include "unit/data/importers/fixture.hpp"

namespace lockstep::data {
namespace {

class ImagesImport : public ImporterTest {
 protected:
  void put(const std::string& name, const FileBytes& file) const {
    write(name, {reinterpret_cast<const char*>(file.data()), file.size()});
  }
  // One colour, so that a sample tells which file it is.
  void put_flat(const std::string& name, int level, std::uint64_t height = 4, std::uint64_t width = 4) const {
    put(name, make_png({height, width, 1, FileBytes(height * width, static_cast<std::byte>(level))}));
  }
  std::unique_ptr<Source> open(const ImportOptions& options = {}) const {
    return open_images(folder_.string(), options);
  }
};

/// First byte of each sample, and its label.
std::vector<std::pair<int, int>> levels_and_labels(Source& source, std::size_t split = 0) {
  const Samples samples = read_split(source, split);
  std::vector<std::pair<int, int>> pairs;
  for (std::size_t i = 0; i < samples.y.size(); ++i) {
    pairs.emplace_back(std::to_integer<int>(samples.x[i * source.spec().x.bytes()]),
                       std::to_integer<int>(samples.y[i]));
  }
  return pairs;
}

using Pairs = std::vector<std::pair<int, int>>;

TEST_F(ImagesImport, ClassesAndFilesAreSortedByName) {
  put_flat("dog/b.png", 30);
  put_flat("cat/z.PNG", 20);
  put_flat("cat/A.png", 10);
  put_flat("dog/a10.png", 50);
  put_flat("dog/a9.png", 60);
  const auto source = open();
  EXPECT_EQ(source->spec().classes, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(source->spec().x, (ArraySpec{core::DType::uint8, {4, 4, 3}}));
  EXPECT_EQ(source->spec().y, (ArraySpec{core::DType::uint8, {}}));
  ASSERT_EQ(source->splits().size(), 1u);
  EXPECT_EQ(source->splits()[0].name, "train");
  EXPECT_EQ(levels_and_labels(*source), (Pairs{{10, 0}, {20, 0}, {50, 1}, {60, 1}, {30, 1}}));
  expect_random_access(*source);
  EXPECT_TRUE(source->remarks().empty());
}

TEST_F(ImagesImport, AllFormatsAreTakenAndOtherFilesCounted) {
  put("c/1.jpg", make_jpeg(make_shades(8, 8, 3)));
  put("c/2.JPEG", make_jpeg(make_shades(8, 8, 1)));
  put("c/3.png", make_png(make_shades(8, 8, 3)));
  write("c/4.ppm", "P6 8 8 255 " + std::string(192, 'x'));
  write("c/5.Pgm", "P5 8 8 255 " + std::string(64, 'y'));
  write("c/notes.txt", "");
  write("c/6.gif", "");
  write("readme", "");
  write("c/.hidden.png", "");
  write("c/._1.jpg", "");
  write("c/.DS_Store", "");
  write("__MACOSX/c/._1.jpg", "");
  const auto source = open();
  EXPECT_EQ(source->splits()[0].n_samples, 5u);
  EXPECT_EQ(read_split(*source).x.size(), 5u * 192);
  ASSERT_EQ(source->remarks().size(), 3u);
  EXPECT_EQ(source->remarks()[0].text.rfind("2 files not named as JPEG", 0), 0u) << source->remarks()[0].text;
  EXPECT_NE(source->remarks()[1].text.find("c/6.gif"), std::string::npos);
  EXPECT_NE(source->remarks()[2].text.find("1 of them with images: c/.hidden.png"), std::string::npos);
}

TEST_F(ImagesImport, GrayHasOneChannel) {
  put("c/1.png", make_png(make_shades(3, 5, 3)));
  const auto source = open({.gray = true});
  EXPECT_EQ(source->spec().x.shape, (std::vector<std::uint64_t>{3, 5, 1}));
  EXPECT_EQ(read_split(*source).x, decode_image(make_png(make_shades(3, 5, 3)), 1).pixels);
}

TEST_F(ImagesImport, TrainAndValAreSplits) {
  put_flat("train/a/1.png", 1);
  put_flat("train/b/2.png", 2);
  put_flat("val/a/3.png", 3);
  put_flat("val/b/4.png", 4);
  put_flat("val/b/5.png", 5);
  put_flat("test/any.png", 6);
  write("labels.txt", "");
  const auto source = open();
  ASSERT_EQ(source->splits().size(), 2u);
  EXPECT_EQ(source->splits()[1].name, "val");
  EXPECT_EQ(levels_and_labels(*source, 0), (Pairs{{1, 0}, {2, 1}}));
  EXPECT_EQ(levels_and_labels(*source, 1), (Pairs{{3, 0}, {4, 1}, {5, 1}}));
  EXPECT_EQ(source->remarks().size(), 1u);
}

TEST_F(ImagesImport, TestBesideValIsAThirdSplit) {
  put_flat("train/a/1.png", 1);
  put_flat("val/a/2.png", 2);
  put_flat("test/a/3.png", 3);
  const auto source = open();
  ASSERT_EQ(source->splits().size(), 3u);
  EXPECT_EQ(source->splits()[2].name, "test");
  EXPECT_EQ(levels_and_labels(*source, 2), (Pairs{{3, 0}}));
  EXPECT_TRUE(source->remarks().empty());
}

TEST_F(ImagesImport, NothingIsLeftOutWithoutAWord) {
  put_flat("train/a/1.png", 1);
  put_flat("train/a/deeper/and/deeper/2.png", 2);
  put_flat("train/b/images/3.png", 3);
  put_flat("train/b/others/4.png", 4);
  put_flat("test/images/5.png", 5);
  put_flat("unsorted/6.png", 6);
  put_flat("unsorted/.hidden/7.png", 7);
  const auto source = open();
  ASSERT_EQ(source->splits().size(), 1u);
  EXPECT_EQ(levels_and_labels(*source), (Pairs{{1, 0}, {3, 1}}));
  ASSERT_EQ(source->remarks().size(), 2u);
  EXPECT_NE(source->remarks()[1].text.find("unsorted/.hidden"), std::string::npos);
  EXPECT_EQ(source->remarks()[0].text.rfind("4 files not named as JPEG", 0), 0u) << source->remarks()[0].text;
  EXPECT_NE(source->remarks()[0].text.find("test/images/5.png"), std::string::npos);
}

TEST_F(ImagesImport, TestStandsInForValAndSaysSo) {
  put_flat("train/a/1.png", 1);
  put_flat("test/a/3.png", 3);
  const auto source = open();
  ASSERT_EQ(source->splits().size(), 2u);
  EXPECT_EQ(source->splits()[1].name, "val");
  EXPECT_EQ(levels_and_labels(*source, 1), (Pairs{{3, 0}}));
  ASSERT_EQ(source->remarks().size(), 1u);
  EXPECT_NE(source->remarks()[0].text.find("test are the split val"), std::string::npos);
}

TEST_F(ImagesImport, TrainMayBeTheNameOfAClass) {
  put_flat("car/1.png", 1);
  put_flat("train/2.png", 2);
  EXPECT_EQ(levels_and_labels(*open()), (Pairs{{1, 0}, {2, 1}}));
}

TEST_F(ImagesImport, ClassesThatLookLikeSplitsAreDoubted) {
  put_flat("train/1.png", 1);
  put_flat("val/2.png", 2);
  EXPECT_EQ(
      open()->remarks(),
      std::vector{warning("classes are called train, val, as folders of another kind are: each split needs a folder "
                          "per class with its images")});
  std::filesystem::rename(path("train"), path("Train"));
  EXPECT_EQ(open()->remarks().size(), 1U);
  put_flat("Train/cat/1.png", 1);
  std::filesystem::remove(path("Train/1.png"));
  expect_usage([&] { open(); }, {"a class without an image", "/Train", "splits are called train, val and test"});
}

TEST_F(ImagesImport, DifferingClassesAreNamed) {
  put_flat("train/a/1.png", 1);
  put_flat("train/c/2.png", 2);
  put_flat("val/a/3.png", 3);
  put_flat("val/b/4.png", 4);
  expect_usage([&] { open(); }, {"class 'b'", "train does not have", "/val"});
  std::filesystem::remove_all(path("val/b"));
  expect_usage([&] { open(); }, {"no class 'c'", "/val"});
}

const std::string composed_e = "caf\xc3\xa9", decomposed_e = "cafe\xcc\x81";  // the same to the eye

TEST_F(ImagesImport, ClassesAreComparedInOneFormOfUnicode) {
  put_flat("train/cafz/1.png", 1);
  put_flat("train/" + composed_e + "/2.png", 2);
  put_flat("val/cafz/3.png", 3);
  put_flat("val/" + decomposed_e + "/4.png", 4);
  const auto source = open();
  EXPECT_EQ(source->spec().classes, (std::vector<std::string>{"cafz", composed_e}));
  EXPECT_EQ(levels_and_labels(*source, 0), (Pairs{{1, 0}, {2, 1}}));
  EXPECT_EQ(levels_and_labels(*source, 1), (Pairs{{3, 0}, {4, 1}}));
  put_flat("val/" + composed_e + "/5.png", 5);
  expect_usage([&] { open(); }, {"two folders of the class 'caf\xc3\xa9'", "/val", "ls -b"});
}

TEST_F(ImagesImport, TinyImageNetIsKnownByItsAnnotations) {
  put_flat("train/n01/images/n01_0.JPEG", 1);
  put_flat("train/n02/images/n02_0.JPEG", 2);
  write("train/n01/n01_boxes.txt", "n01_0.JPEG\t0\t0\t1\t1\n");
  put_flat("val/images/val_0.JPEG", 3);
  put_flat("val/images/val_1.JPEG", 4);
  put_flat("val/images/val_2.JPEG", 5);
  put_flat("test/images/test_0.JPEG", 6);
  const std::string good = "val_2.JPEG\tn01\t0\t32\t44\t62\nval_1.JPEG\tn02\t0\t0\t1\t1\nval_0.JPEG\tn01\t0\t0\t1\t1\n";
  const std::string file = write("val/val_annotations.txt", good);
  const auto source = open();
  EXPECT_EQ(source->spec().classes, (std::vector<std::string>{"n01", "n02"}));
  EXPECT_EQ(levels_and_labels(*source, 0), (Pairs{{1, 0}, {2, 1}}));
  EXPECT_EQ(levels_and_labels(*source, 1), (Pairs{{3, 0}, {5, 0}, {4, 1}}));

  write("val/val_annotations.txt", good.substr(0, good.find("val_0")));
  expect_usage([&] { open(); }, {"no class for the image 'val_0.JPEG'", "val_annotations.txt"});
  write("val/val_annotations.txt", good + "val_9.JPEG\tn01\n");
  expect_usage([&] { open(); }, {"no image 'val_9.JPEG'", "line 4"});
  write("val/val_annotations.txt", good + "val_1.JPEG\tn01\n");
  expect_usage([&] { open(); }, {"'val_1.JPEG' occurs twice"});
  write("val/val_annotations.txt", good + "val_1.JPEG n01\n");
  expect_usage([&] { open(); }, {"line 4 is not an annotation"});
  put_flat("val/images/" + decomposed_e + ".JPEG", 7);
  write("val/val_annotations.txt", good + composed_e + ".JPEG\tn02\n");
  EXPECT_EQ(levels_and_labels(*open(), 1), (Pairs{{3, 0}, {5, 0}, {7, 1}, {4, 1}}));
  put_flat("val/images/" + composed_e + ".JPEG", 7);
  expect_usage([&] { open(); }, {"two images 'caf\xc3\xa9.JPEG'", "ls -b"});
  std::filesystem::remove(path("val/images/" + composed_e + ".JPEG"));
  std::filesystem::remove(path("val/images/" + decomposed_e + ".JPEG"));
  std::string other = good;
  other.replace(good.find("n02"), 3, "n03");
  write("val/val_annotations.txt", other);
  expect_usage([&] { open(); }, {"no class 'n02'"});
}

TEST_F(ImagesImport, ImagesOfOneSizeNeedNoOptions) {
  put_flat("c/1.png", 1, 6, 4);
  put_flat("c/2.png", 2, 4, 6);
  const auto source = open();
  EXPECT_EQ(source->spec().x.shape, (std::vector<std::uint64_t>{6, 4, 3}));
  expect_usage([&] { read_split(*source); }, {"c/2.png", "4 x 6", "6 x 4", "--resize"});
}

TEST_F(ImagesImport, ResizeAndCropBringAllToOneSize) {
  const Image wide = make_shades(20, 41, 3), high = make_shades(33, 21, 3), small = make_shades(6, 6, 3);
  put("c/1.png", make_png(wide));
  put("c/2.png", make_png(high));
  put("c/3.png", make_png(small));
  const auto source = open({.resize = 10, .crop = 8});
  EXPECT_EQ(source->spec().x.shape, (std::vector<std::uint64_t>{8, 8, 3}));
  const Samples samples = read_split(*source);

  FileBytes resized(10 * 20 * 3), expected;  // 41 * 10 / 20, rounded down
  resize(wide.pixels, 20, 41, 3, {0, 0, 20, 41}, 10, 20, resized);
  for (std::size_t y = 1; y < 9; ++y) {
    const auto row = resized.begin() + static_cast<std::ptrdiff_t>((y * 20 + 6) * 3);
    expected.insert(expected.end(), row, row + 8 * 3);
  }
  EXPECT_LE(greatest_difference({samples.x.data(), expected.size()}, expected), 1);
}

TEST_F(ImagesImport, CropAloneTakesTheCentre) {
  Image image = make_shades(5, 7, 3);
  put("c/1.png", make_png(image));
  const auto source = open({.crop = 3});
  const Samples samples = read_split(*source);
  for (std::size_t y = 0; y < 3; ++y) {
    const auto row = image.pixels.begin() + static_cast<std::ptrdiff_t>(((y + 1) * 7 + 2) * 3);
    EXPECT_TRUE(std::equal(row, row + 9, samples.x.begin() + static_cast<std::ptrdiff_t>(y * 9)));
  }
  put_flat("c/0.png", 1, 2, 9);
  expect_usage([&] { read_split(*open({.crop = 3})); }, {"c/0.png", "2 x 9", "at least 3 x 3", "--resize"});
}

// A large JPEG takes the way over a reduced decoding; the picture must be the same.
TEST_F(ImagesImport, ReducedJpegGivesTheSamePicture) {
  const Image large = make_shades(160, 200, 3);
  put("c/1.jpg", make_jpeg(large));
  const Samples samples = read_split(*open({.resize = 30}));
  FileBytes expected(30 * 37 * 3);
  resize(large.pixels, 160, 200, 3, {0, 0, 160, 200}, 30, 37, expected);
  EXPECT_LE(greatest_difference(samples.x, expected), 8);
}

/// What a source says of all its samples.
std::vector<Remark> remarks_on_all(Source& source) {
  static_cast<void>(source.take_tally());
  read_split(source);
  return source.remarks_on(source.take_tally());
}

TEST_F(ImagesImport, PicturesAreTurnedUprightAndSaidSo) {
  const FileBytes stored = make_png(bytes_of("abcdef"), 2, 3, {.color_type = PNG_COLOR_TYPE_GRAY});
  put("c/1.png", with_exif_chunk(stored, make_exif(6)));
  put("c/2.png", with_exif_chunk(stored, make_exif(8)));
  const auto source = open({.gray = true});
  EXPECT_EQ(source->spec().x.shape, (std::vector<std::uint64_t>{3, 2, 1}));
  EXPECT_EQ(read_split(*source).x, bytes_of("daebfccfbead"));
  EXPECT_EQ(remarks_on_all(*source),
            std::vector{changed("2 images turned upright by their EXIF or XMP orientation; --keep-orientation takes "
                                "pixels as stored (the first is c/1.png)")});
  const auto kept = open({.gray = true, .keep_orientation = true});
  EXPECT_EQ(read_split(*kept).x, bytes_of("abcdefabcdef"));
  EXPECT_EQ(remarks_on_all(*kept),
            std::vector{left_out("the orientation of 2 images, as --keep-orientation asks (the first is c/1.png)")});
}

TEST_F(ImagesImport, WhatIsNotAppliedIsCounted) {
  put_flat("train/c/1.png", 1);
  put_flat("val/c/1.png", 1);
  const FileBytes plain = make_png(make_shades(4, 4, 3));
  put("val/c/2.png", with_chunk(plain, "acTL", {"\0\0\0\2\0\0\0\0", 8}, ChunkPlace::first));
  put("val/c/3.png", with_chunk(plain, "gAMA", {"\0\1\x86\xa0", 4}, ChunkPlace::first));
  put("val/c/4.png", with_chunk(plain, "gAMA", {"\0\1\x86\xa0", 4}, ChunkPlace::first));
  const auto source = open_images(folder_.string() + "//", {});
  static_cast<void>(source->take_tally());
  for (const std::size_t split : {1, 0}) read_split(*source, split);
  EXPECT_EQ(source->remarks_on(source->take_tally()),
            (std::vector{changed("2 images in gray: each becomes RGB with three equal channels; --gray stores one "
                                 "channel (the first is train/c/1.png)"),
                         left_out("2 images with a gamma other than that of sRGB: it is not applied, colours stay as "
                                  "stored (the first is val/c/3.png)"),
                         left_out("1 image with an animation (APNG): the picture for programs without animation is "
                                  "taken alone (it is val/c/2.png)")}));
}

TEST_F(ImagesImport, WhiteOf16BitsIsSeenOrSaid) {
  const auto put_wide = [&](const std::string& name, const std::string& pixels) {
    put(name, make_png(bytes_of(pixels), 1, 2, {.color_type = PNG_COLOR_TYPE_GRAY, .bit_depth = 16}));
  };
  put_wide("c/1.png", {"\x03\xf0\x00\x00", 4});  // 1008 and 0
  expect_usage([&] { open(); }, {"16 bits whose values go up to 1008", "c/1.png", "--white 1023"});
  const auto of_10_bits = open({.gray = true, .white = 1023});
  EXPECT_EQ(read_split(*of_10_bits).x, (FileBytes{std::byte{251}, std::byte{0}}));
  ASSERT_EQ(remarks_on_all(*of_10_bits).size(), 1U);
  EXPECT_NE(remarks_on_all(*of_10_bits)[0].text.find("1 image scaled to 8 bits"), std::string::npos);
  EXPECT_EQ(read_split(*open({.gray = true, .white = 65535})).x, (FileBytes{std::byte{4}, std::byte{0}}));
  put_wide("c/1.png", {"\x80\x00\x00\x00", 4});
  EXPECT_EQ(read_split(*open({.gray = true})).x, (FileBytes{std::byte{128}, std::byte{0}}));
}

TEST_F(ImagesImport, FormatsAreNamedByTheirFirstBytes) {
  write("c/1.jpg", "RIFF....WEBPVP8 ");
  expect_usage([&] { open(); }, {"c/1.jpg: this is WebP: convert it to PNG or JPEG"});
  const std::string archive = write("photos.zip", "PK\x03\x04");
  expect_usage([&] { open_images(archive, {}); }, {"this is a zip archive", "unpack it"});
}

TEST_F(ImagesImport, DamagedImageIsABadSample) {
  FileBytes truncated = make_jpeg(make_shades(8, 8, 3));
  truncated.resize(truncated.size() - 20);
  put("c/0.jpg", truncated);
  put_flat("c/1.png", 1, 8, 8);
  write("c/2.png", "");
  for (const bool keep_encoded : {false, true}) {
    const auto source = open({.keep_encoded = keep_encoded});
    Samples one{FileBytes(source->spec().x.bytes()), FileBytes(1)};
    for (const auto& [index, words] : {std::pair{0u, "c/0.jpg: damaged JPEG"}, {2u, "c/2.png: an empty file"}}) {
      try {
        keep_encoded ? static_cast<void>(source->read_encoded(0, index, one.y))
                     : source->read(0, index, 1, one.x, one.y);
        ADD_FAILURE() << "no BadSample";
      } catch (const BadSample& bad) {
        EXPECT_EQ(bad.index(), index);
        EXPECT_NE(std::string{bad.what()}.find(words), std::string::npos) << bad.what();
      }
    }
  }
}

TEST_F(ImagesImport, NothingButDamageIsAnError) {
  write("c/0.jpg", "?");
  write("c/1.jpg", "");
  expect_usage([&] { open(); }, {"none of the images", "c/0.jpg: not an image"});
}

TEST_F(ImagesImport, KeptFilesAreTheFiles) {
  const FileBytes first = make_jpeg(make_shades(9, 7, 3)), second = make_png(make_shades(5, 5, 1));
  put("a/1.jpg", first);
  put("b/1.png", second);
  const auto source = open({.keep_encoded = true});
  EXPECT_TRUE(source->spec().is_encoded());
  EXPECT_EQ(source->spec().x, (ArraySpec{core::DType::uint8, {}}));
  FileBytes label(1);
  EXPECT_EQ(source->read_encoded(0, 0, label), first);
  EXPECT_EQ(label, FileBytes(1, std::byte{0}));
  EXPECT_EQ(source->read_encoded(0, 1, label), second);
  EXPECT_EQ(label, FileBytes(1, std::byte{1}));
}

TEST_F(ImagesImport, ManyClassesHaveWiderLabels) {
  for (int i = 0; i < 300; ++i) put_flat(std::to_string(1000 + i) + "/1.png", i % 256, 1, 1);
  const auto source = open();
  EXPECT_EQ(source->spec().y.dtype, core::DType::uint16);
  const std::vector<std::uint16_t> labels = values<std::uint16_t>(read_split(*source).y);
  ASSERT_EQ(labels.size(), 300u);
  for (std::uint16_t i = 0; i < 300; ++i) EXPECT_EQ(labels[i], i);
}

TEST_F(ImagesImport, WrongFoldersAreRefused) {
  expect_usage([&] { open_images(path("none"), {}); }, {"no such folder", "none"});
  expect_usage([&] { open(); }, {"no folder of a class"});
  put_flat("1.png", 1);
  expect_usage([&] { open(); }, {"no folder of a class, but 1 images"});
  put_flat("a/1.png", 1);
  write("b/x.txt", "");
  expect_usage([&] { open(); }, {"a class without an image", "/b"});
  expect_usage([&] { open({.resize = 3, .crop = 4}); }, {"a class without"});
  std::filesystem::remove_all(path("b"));
  expect_usage([&] { open({.resize = 3, .crop = 4}); }, {"--crop", "at most 3"});
}

}  // namespace
}  // namespace lockstep::data
