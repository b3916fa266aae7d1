#include "data/importers/image_folder.hpp"

#include "support/unreadable.hpp"
#include "unit/data/importers/fixture.hpp"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

class ImageFolderScan : public ImporterTest {
 protected:
  ImageFolderScan() {
    for (const char* file : {"train/a/1.png", "val/a/2.png", "test/a/3.png", "other/4.png", "other/deep/5.png"})
      write(file, "");
  }
  [[nodiscard]] ImageFolder scan() const { return scan_image_folder(folder_.string()); }
};

TEST_F(ImageFolderScan, AFolderThatCannotBeListedIsRefused) {
  for (const char* name : {"", "train", "val", "test", "train/a", "test/a"}) {
    const support::Unreadable locked{path(name)};
    expect_usage([&] { static_cast<void>(scan()); }, {"cannot list the folder", name, "chmod u+rx"});
  }
  fs::remove_all(path("val"));
  const support::Unreadable locked{path("test")};
  expect_usage([&] { static_cast<void>(scan()); }, {"cannot list the folder", "/test", "chmod u+rx"});
}

TEST_F(ImageFolderScan, AFolderBesideTheImagesThatCannotBeListedIsNamed) {
  EXPECT_EQ(scan().ignored.n, 2U);
  EXPECT_EQ(scan().unreadable.n, 0U);
  const support::Unreadable locked{path("other/deep")};
  EXPECT_EQ(scan().ignored.n, 1U);
  EXPECT_EQ(scan().unreadable.n, 1U);
  EXPECT_EQ(scan().unreadable.first, "other/deep");
  const auto source = open_images(folder_.string(), {.keep_encoded = true});
  ASSERT_EQ(source->remarks().size(), 2U);
  EXPECT_EQ(source->remarks()[1],
            warning("1 folder beside the images cannot be listed, so its files are left out: other/deep"));
}

TEST_F(ImageFolderScan, ASplitByAnotherNameIsNamed) {
  for (const char* file : {"extra/a/6.png", "validation/a/7.png"}) write(file, "");
  EXPECT_EQ(scan().other_splits.n, 2U) << "there is a val";
  EXPECT_EQ(scan().other_splits.first, "extra");
  EXPECT_EQ(scan().ignored.n, 2U) << "those of other";
  const auto source = open_images(folder_.string(), {.keep_encoded = true});
  ASSERT_EQ(source->remarks().size(), 2U);
  EXPECT_EQ(source->remarks()[1], left_out("2 folders beside train with folders of its classes: extra, ...; splits are "
                                           "called train, val and test"));
  fs::remove_all(path("val"));
  std::string before = "validation";
  for (const std::string name : {"validation", "valid", "dev", "eval", "Val"}) {
    fs::rename(path(before), path(name));
    before = name;
    const std::string what = "'" + name + "' has the classes of train, and there is no folder val";
    const std::string fix = "rename '" + name + "' to val";
    expect_usage([&] { static_cast<void>(scan()); }, {what.c_str(), fix.c_str()});
  }
  fs::rename(path(before), path("val"));
  EXPECT_EQ(scan().splits.size(), 3U);
  EXPECT_EQ(scan().other_splits.n, 1U);
  const support::Unreadable locked{path("other")};
  EXPECT_EQ(scan().unreadable.first, "other");
}

TEST_F(ImageFolderScan, HiddenFoldersAreNamedWhereThereAreNoOthers) {
  for (const char* name : {"train", "val", "test", "other"}) fs::remove_all(path(name));
  for (const char* file : {".b/1.png", ".a/1.png"}) write(file, "");
  expect_usage([&] { static_cast<void>(scan()); },
               {"no folder of a class, but 0 images and hidden ones such as '.a'", "does not begin with a dot"});
}

TEST_F(ImageFolderScan, FilesBesideTheImagesOfAnnotationsAreCounted) {
  for (const char* file : {"val/images/6.png", "val/n1/7.png", "val/8.png", "val/notes.txt"}) write(file, "");
  write("val/val_annotations.txt", "6.png\ta\n");
  const ImageFolder found = scan();
  EXPECT_EQ(found.splits.at(1).size(), 1U);
  EXPECT_EQ(found.ignored.n, 6U) << "val/a/2.png, 7.png, 8.png, notes.txt, and two of other";
  EXPECT_EQ(found.ignored.first, "other/4.png");
}

// As a copy from macOS has it: names of classes are composed, those of folders are not.
TEST_F(ImageFolderScan, ATestIsFoundWhateverItsFormOfUnicode) {
  for (const std::string split : {"train", "val", "test"}) {
    fs::remove_all(folder_ / split);
    if (split != "val") write(split + "/cafe\xcc\x81/1.png", "");
  }
  EXPECT_EQ(scan().splits.size(), 2U);
  EXPECT_EQ(scan().composed, std::set<std::string>{"caf\xc3\xa9"});
}

TEST_F(ImageFolderScan, HiddenFilesAndFoldersAreCounted) {
  EXPECT_EQ(scan().hidden.n, 0U);
  for (const char* file : {".git/config", "__MACOSX/a/._1.png", "other/.b.webp", "train/.DS_Store", "train/a/._1.jpg",
                           "train/a/.ipynb_checkpoints/deep/1.png", "train/a/.ipynb_checkpoints/2.png"})
    write(file, "");
  fs::create_directory_symlink("train", path(".link"));  // not followed
  const ImageFolder found = scan();
  EXPECT_EQ(found.hidden.n, 7U) << "a folder counts as one";
  EXPECT_EQ(found.hidden.first, ".git");
  EXPECT_EQ(found.hidden_images.n, 2U);
  EXPECT_EQ(found.hidden_images.first, "other/.b.webp");
  EXPECT_EQ(found.ignored.n, 2U);
  EXPECT_EQ(found.splits.at(0).size(), 1U);
  const support::Unreadable locked{path("train/a/.ipynb_checkpoints")};
  EXPECT_EQ(scan().hidden.n, 7U);
  EXPECT_EQ(scan().hidden_images.n, 1U);
  EXPECT_EQ(scan().unreadable.first, "train/a/.ipynb_checkpoints");
}

TEST_F(ImageFolderScan, ImagesOfOtherFormatsAreCounted) {
  for (const char* file : {"train/a/2.webp", "train/a/3.TIFF", "other/6.gif"}) write(file, "");
  EXPECT_EQ(scan().unread.n, 3U);
  EXPECT_EQ(scan().unread.first, "other/6.gif");
  EXPECT_EQ(scan().ignored.n, 2U);
}

TEST_F(ImageFolderScan, AClassOfOtherFormatsIsRefusedByItsContent) {
  struct Named {
    std::string content;
    const char* fix;
  };
  for (const Named& c : {Named{"RIFF....WEBPVP8 ", "this is WebP: convert it to PNG or JPEG"},
                         Named{"....ftypheic", "this is HEIC: convert it to PNG or JPEG"},
                         Named{"\xff\xd8\xff", "this is JPEG: let its name end in .jpg"},
                         Named{"\x89PNG", "this is PNG: let its name end in .png"},
                         Named{"P6 1 1 255 abc", "this is PPM or PGM: let its name end in .ppm"},
                         Named{"", "convert it to PNG or JPEG"}}) {
    write("train/b/4.webp", c.content);
    expect_usage([&] { static_cast<void>(scan()); },
                 {"a class without an image that is read, but 1 of another format, such as 4.webp", "/train/b", c.fix});
  }
}

}  // namespace
}  // namespace lockstep::data
