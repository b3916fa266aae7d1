// Which image files a folder holds, and the class of each: the layouts that image data sets come in.
// Invariant: classes and the files of each are sorted by name, so the order depends on names only; of an image, its
// name and 8 bytes are kept.
// Used by data/importers/images.cpp.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::data {

/// The files of one split, class after class.
class ImageList {
 public:
  explicit ImageList(std::string name) : name_{std::move(name)} {}

  /// Files of the next class. `names` are within `folder`.
  void add_class(std::string folder, const std::vector<std::string>& names);

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return ends_.size(); }
  [[nodiscard]] std::uint64_t label(std::uint64_t index) const;
  [[nodiscard]] std::string path(std::uint64_t index) const;

 private:
  std::string name_;
  std::string names_{};                        // all file names, one after another
  std::vector<std::uint64_t> ends_{};          // of each file's name in names_
  std::vector<std::string> folders_{};         // of each class
  std::vector<std::uint64_t> class_starts_{};  // first file of each class
};

/// Paths within the folder: how many, and the first by name.
struct CountedPaths {
  std::uint64_t n = 0;
  std::string first{};
};

struct ImageFolder {
  std::string root{};  ///< without a slash at its end, as paths of images begin
  std::vector<std::string> classes{};
  std::vector<ImageList> splits{};   ///< "train", and "val" and "test" if there are
  CountedPaths ignored{};            ///< files that are not images of a class, by name or place
  CountedPaths unread{};             ///< images in other formats, by name
  CountedPaths hidden{};             ///< files and folders, each counted as one
  CountedPaths hidden_images{};      ///< those of `hidden` that are images or hold one, by name
  CountedPaths other_splits{};       ///< folders beside train with folders of its classes, whose files count nowhere
  CountedPaths unreadable{};         ///< folders whose files would be ignored, but cannot be listed
  std::set<std::string> composed{};  ///< classes whose names were in another form of Unicode
  bool is_val_from_test = false;
};

/// Looks through `path`: a folder per class; train/, val/ and test/ with a folder per class each (a test/ alone stands
/// in for val/, and one without classes is skipped); or, as TinyImageNet has it, train/CLASS/images/ and val/images/
/// with val/val_annotations.txt. Throws core::Error (usage) if it is none of these, a class has no image, classes of
/// splits differ, or val has another name.
[[nodiscard]] ImageFolder scan_image_folder(const std::string& path);

}  // namespace lockstep::data
