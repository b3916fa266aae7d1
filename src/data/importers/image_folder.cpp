#include "data/importers/image_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>

#include "core/error.hpp"
#include "core/shortage.hpp"
#include "data/format/names.hpp"
#include "data/importers/image_names.hpp"
#include "data/importers/input.hpp"
#include "io/file.hpp"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

/// The entries of one folder, each list sorted. Hidden entries are passed over.
struct Listing {
  std::vector<std::string> folders{};
  std::vector<std::string> images{};
  std::vector<std::string> unread{};  ///< images in other formats, by name
};

class Scan {
 public:
  explicit Scan(std::string root) : root_{std::move(root)} {
    while (root_.size() > 1 && root_.ends_with('/')) root_.pop_back();
    result_.root = root_;
  }

  ImageFolder run() {
    const std::optional<std::string> train = subfolder("train");
    if (!train || list_folders(*train).empty()) {  // "train" may be the name of a class
      add_split("train", root_);
    } else {
      add_split("train", *train);
      const std::optional<std::string> val = subfolder("val");
      ignore_beside_splits(val.has_value());
      if (val) add_split("val", *val);
      if (const std::optional<std::string> test = subfolder("test")) add_test(*test, !val);
    }
    return std::move(result_);
  }

 private:
  [[nodiscard]] std::optional<std::string> subfolder(const char* name) const {
    std::error_code error;
    std::string path = root_ + "/" + name;
    const fs::file_type type = fs::status(path, error).type();
    if (type == fs::file_type::none) fail_to_list(path, error);  // it cannot be known whether it is there
    return type == fs::file_type::directory ? std::optional{std::move(path)} : std::nullopt;
  }

  [[nodiscard]] static std::vector<std::string> list_folders(const std::string& path, bool hidden = false,
                                                             bool must_be_listed = true) {
    std::vector<std::string> names;
    std::error_code error, unreadable;
    for (fs::directory_iterator entry{path, error}, end; !error && entry != end; entry.increment(error)) {
      std::string name = entry->path().filename().string();
      if (is_hidden_name(name) == hidden && entry->is_directory(unreadable)) names.push_back(std::move(name));
    }
    if (error && must_be_listed) fail_to_list(path, error);
    return names;
  }

  [[noreturn]] static void fail_to_list(const std::string& folder, const std::error_code& error) {
    core::refuse_shortage("cannot list the folder", folder, error.value());
    core::fail_usage({.what = "cannot list the folder: " + error.message(),
                      .where = folder,
                      .expected = "a folder that can be read",
                      .fix = "allow reading and entering it (chmod u+rx)"});
  }

  /// Files that are not images are ignored, but for the one called `own`.
  Listing list(const std::string& folder, std::string_view own = {}) {
    Listing listing;
    std::error_code error, unreadable;
    for (fs::directory_iterator entry{folder, error}, end; !error && entry != end; entry.increment(error)) {
      std::string name = entry->path().filename().string();
      if (is_hidden_name(name)) {
        pass_over(folder + "/" + name);
      } else if (entry->is_directory(unreadable)) {
        listing.folders.push_back(std::move(name));
      } else if (format_named(name)) {
        listing.images.push_back(std::move(name));
      } else if (name != own) {
        ignore(folder + "/" + name);
        if (is_other_image_name(name)) listing.unread.push_back(std::move(name));
      }
    }
    if (error) fail_to_list(folder, error);
    std::sort(listing.folders.begin(), listing.folders.end());
    std::sort(listing.images.begin(), listing.images.end());
    std::sort(listing.unread.begin(), listing.unread.end());
    return listing;
  }

  void ignore(const std::string& path) { count(path, is_other_image_name(path) ? result_.unread : result_.ignored); }

  // The order of entries depends on the file system; the least name does not.
  void count(const std::string& path, CountedPaths& paths) const {
    std::string within = path.substr(std::min(root_.size() + 1, path.size()));
    if (paths.n++ == 0 || within < paths.first) paths.first = std::move(within);
  }

  // A folder counts as one, and is searched up to its first image: it may be a cache or a snapshot of all there is.
  void pass_over(const std::string& path) {
    count(path, result_.hidden);
    const auto is_image = [](const fs::path& file) { return is_hidden_image_name(file.filename().string()); };
    std::error_code error, unreadable;
    bool has_image = false;
    if (!fs::is_directory(fs::symlink_status(path, error))) {
      has_image = is_image(path);
    } else {
      for (fs::recursive_directory_iterator entry{path, error}, end; !error && !has_image && entry != end;
           entry.increment(error))
        has_image = is_image(entry->path()) && !entry->is_directory(unreadable);
      if (error) count(path, result_.unreadable);
    }
    if (has_image) count(path, result_.hidden_images);
  }

  // All files below it. Links to folders are not followed, as they may lead in circles.
  void ignore_tree(const std::string& top) {
    std::vector<std::string> folders{top};
    while (!folders.empty()) {
      const std::string folder = std::move(folders.back());
      folders.pop_back();
      std::error_code error, unreadable;
      for (fs::directory_iterator entry{folder, error}, end; !error && entry != end; entry.increment(error)) {
        if (const std::string path = entry->path().string(); is_hidden_name(entry->path().filename().string()))
          pass_over(path);
        else if (fs::is_directory(entry->symlink_status(unreadable)))
          folders.push_back(path);
        else
          ignore(path);
      }
      if (error) count(folder, result_.unreadable);
    }
  }

  void ignore_beside_splits(bool has_val) {
    constexpr std::array<std::string_view, 5> names_of_val{"val", "valid", "validation", "dev", "eval"};
    const Listing listing = list(root_);
    for (const std::string& image : listing.images) ignore(root_ + "/" + image);
    for (const std::string& name : listing.folders) {
      if (name == "train" || name == "val" || name == "test") continue;
      const std::string path = root_ + "/" + name;
      const bool is_split = has_class(list_folders(path, false, false));  // by another name
      if (is_split && !has_val && std::ranges::find(names_of_val, without_slips(name)) != names_of_val.end())
        core::fail_usage({.what = fmt::format("'{}' has the classes of train, and there is no folder val", name),
                          .where = root_,
                          .expected = "splits called train, val and test",
                          .fix = fmt::format("rename '{}' to val; to leave it out, move it elsewhere", name)});
      if (!is_split) ignore_tree(path);
      if (is_split) count(path, result_.other_splits);
    }
  }

  [[nodiscard]] bool has_class(const std::vector<std::string>& folders) const {
    return std::ranges::any_of(folders, [this](const std::string& name) {
      return std::ranges::find(result_.classes, composed(name)) != result_.classes.end();
    });
  }

  // Ignores a test folder without labels, such as that of TinyImageNet.
  void add_test(const std::string& folder, bool is_val) {
    if (!has_class(list_folders(folder))) return ignore_tree(folder);
    result_.is_val_from_test = is_val;
    add_split(is_val ? "val" : "test", folder);
  }

  void add_split(const char* name, const std::string& folder) {
    ImageList images{name};
    std::error_code error;
    const std::string annotations = folder + "/val_annotations.txt";
    std::vector<std::string> classes =
        fs::exists(annotations, error) ? add_annotated(folder, annotations, images) : add_class_folders(folder, images);
    if (result_.splits.empty()) {
      result_.classes = std::move(classes);
    } else {
      compare_classes(classes, folder);
    }
    result_.splits.push_back(std::move(images));
  }

  std::vector<std::string> add_class_folders(const std::string& folder, ImageList& images) {
    const Listing listing = list(folder);
    if (listing.folders.empty()) refuse_no_class(folder, listing.images.size());
    for (const std::string& image : listing.images) ignore(folder + "/" + image);
    std::map<std::string, std::string> by_class;  // the folder of each
    for (const std::string& name : listing.folders) {
      const auto [twin, is_new] = by_class.emplace(composed(name), name);
      if (!is_new)
        core::fail_usage(
            {.what = fmt::format("two folders of the class '{}', whose names differ only in their form of Unicode",
                                 twin->first),
             .where = folder,
             .expected = "one folder per class",
             .fix = "put the images of both into one; ls -b shows the names byte by byte"});
    }
    std::vector<std::string> classes;
    for (const auto& [name, in] : by_class) {
      add_class_folder(folder + "/" + in, images);
      classes.push_back(composed_class(in));
    }
    return classes;
  }

  void add_class_folder(std::string folder, ImageList& images) {
    Listing listing = list(folder);
    if (listing.images.empty() && std::binary_search(listing.folders.begin(), listing.folders.end(), "images")) {
      for (const std::string& name : listing.folders)
        if (name != "images") ignore_tree(folder + "/" + name);
      folder += "/images";
      listing = list(folder);
    }
    if (listing.images.empty()) refuse_empty_class(folder, listing);
    for (const std::string& name : listing.folders) ignore_tree(folder + "/" + name);
    images.add_class(std::move(folder), listing.images);
  }

  [[noreturn]] static void refuse_no_class(const std::string& folder, std::size_t n_images) {
    const std::vector<std::string> hidden = list_folders(folder, true);
    const auto more = hidden.empty() ? "" : fmt::format(" and hidden ones such as '{}'", std::ranges::min(hidden));
    core::fail_usage(
        {.what = fmt::format("no folder of a class, but {} images{}", n_images, more),
         .where = folder,
         .expected = "one folder per class with its images in it",
         .fix = "make a folder per class, whose name does not begin with a dot, or give the folder above"});
  }

  [[noreturn]] static void refuse_empty_class(const std::string& folder, const Listing& listing) {
    const std::size_t n = listing.unread.size();
    core::fail_usage(
        {.what = n == 0 ? "a class without an image"
                        : fmt::format("a class without an image that is read, but {} of another format, such as {}", n,
                                      listing.unread.front()),
         .where = folder,
         .expected = "files that end in .jpg, .jpeg, .png, .ppm or .pgm",
         .fix = n > 0                     ? describe_content(folder + "/" + listing.unread.front())
                : listing.folders.empty() ? "remove the folder, or put the images of its class into it"
                                          : "put the images of a class right into its folder; folders of splits are "
                                            "called train, val and test"});
  }

  /// What a class is called, by the name of its folder or the word of its annotation.
  std::string composed_class(const std::string& name) {
    std::string plain = composed(name);
    if (plain != name) result_.composed.insert(plain);
    return plain;
  }

  void ignore_beside_images(const std::string& folder, const std::string& annotations) {
    const Listing beside = list(folder, annotations);
    for (const std::string& image : beside.images) ignore(folder + "/" + image);
    for (const std::string& name : beside.folders)
      if (name != "images") ignore_tree(folder + "/" + name);
  }

  // FILE<TAB>CLASS<TAB>... a line, for the files of images/.
  std::vector<std::string> add_annotated(const std::string& folder, const std::string& annotations, ImageList& images) {
    const std::string image_folder = folder + "/images";
    ignore_beside_images(folder, fs::path{annotations}.filename().string());
    const auto [folders, present, unread] = list(image_folder);
    for (const std::string& name : folders) ignore_tree(image_folder + "/" + name);
    const std::string text = io::read_text(annotations);
    const std::map<std::string, std::string> by_name = by_composed_name(present, image_folder);
    std::map<std::string, std::vector<std::string>> by_class;
    std::vector<std::string> listed;
    for (std::size_t begin = 0, line = 1; begin < text.size(); ++line) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      const auto [name, word] = parse_annotation(std::string_view{text}.substr(begin, end - begin), annotations, line);
      const auto image = by_name.find(composed(name));
      if (image == by_name.end()) {
        core::fail_usage({.what = fmt::format("no image '{}', which line {} names", name, line),
                          .where = annotations,
                          .expected = "every file of the first column in " + image_folder,
                          .fix = "put the file there, or remove the line"});
      }
      by_class[composed_class(word)].push_back(image->second);
      listed.push_back(image->second);
      begin = end + 1;
    }
    check_annotated(present, std::move(listed), annotations);
    std::vector<std::string> classes;
    for (auto& [name, files] : by_class) {
      std::sort(files.begin(), files.end());
      images.add_class(image_folder, files);
      classes.push_back(name);
    }
    return classes;
  }

  /// Returns the names of images by their composed form of Unicode; refuses two of the same form.
  static std::map<std::string, std::string> by_composed_name(const std::vector<std::string>& names,
                                                             const std::string& folder) {
    std::map<std::string, std::string> files;
    for (const std::string& name : names) {
      const auto [twin, is_new] = files.emplace(composed(name), name);
      if (is_new) continue;
      core::fail_usage(
          {.what = fmt::format("two images '{}', whose names differ in their form of Unicode only", twin->first),
           .where = folder,
           .expected = "one, as the annotations name it",
           .fix = "rename or remove one of them; ls -b shows the names byte by byte"});
    }
    return files;
  }

  static std::pair<std::string, std::string> parse_annotation(std::string_view line, const std::string& path,
                                                              std::size_t number) {
    const std::size_t tab = line.find('\t');
    const std::string_view rest = tab == std::string_view::npos ? std::string_view{} : line.substr(tab + 1);
    const std::string_view word = rest.substr(0, rest.find_first_of("\t\r"));
    if (tab == 0 || word.empty()) {
      core::fail_usage({.what = fmt::format("line {} is not an annotation", number),
                        .where = path,
                        .expected = "file, tab, class",
                        .fix = "correct the line, or fetch the file again"});
    }
    return {std::string{line.substr(0, tab)}, std::string{word}};
  }

  static void check_annotated(const std::vector<std::string>& present, std::vector<std::string> listed,
                              const std::string& path) {
    std::sort(listed.begin(), listed.end());
    const auto [image, line] = std::mismatch(present.begin(), present.end(), listed.begin(), listed.end());
    if (image != present.end() && (line == listed.end() || *image < *line)) {
      core::fail_usage({.what = fmt::format("no class for the image '{}'", *image),
                        .where = path,
                        .expected = "one line for each image",
                        .fix = "add a line for it, or remove the image"});
    }
    if (line != listed.end()) {
      core::fail_usage({.what = fmt::format("the image '{}' occurs twice", *line),
                        .where = path,
                        .expected = "one line for each image",
                        .fix = "remove one of its lines"});
    }
  }

  void compare_classes(const std::vector<std::string>& classes, const std::string& folder) const {
    const auto [ours, theirs] =
        std::mismatch(result_.classes.begin(), result_.classes.end(), classes.begin(), classes.end());
    if (ours == result_.classes.end() && theirs == classes.end()) return;
    const bool is_missing = theirs == classes.end() || (ours != result_.classes.end() && *ours < *theirs);
    core::fail_usage(
        {.what = is_missing ? fmt::format("no class '{}', which train has", *ours)
                            : fmt::format("class '{}', which train does not have", *theirs),
         .where = folder,
         .expected = fmt::format("the {} classes of train, as labels are numbered by class", result_.classes.size()),
         .fix = "make the classes of both the same"});
  }

  std::string root_;
  ImageFolder result_{};
};

}  // namespace

void ImageList::add_class(std::string folder, const std::vector<std::string>& names) {
  folders_.push_back(std::move(folder));
  class_starts_.push_back(size());
  for (const std::string& name : names) {
    names_ += name;
    ends_.push_back(names_.size());
  }
}

std::uint64_t ImageList::label(std::uint64_t index) const {
  const auto next = std::upper_bound(class_starts_.begin(), class_starts_.end(), index);
  return static_cast<std::uint64_t>(next - class_starts_.begin()) - 1;
}

std::string ImageList::path(std::uint64_t index) const {
  const std::uint64_t begin = index == 0 ? 0 : ends_.at(index - 1);
  return folders_.at(label(index)) + "/" + names_.substr(begin, ends_.at(index) - begin);
}

ImageFolder scan_image_folder(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    if (is_file(path)) refuse_other_format(path, "a folder with one folder per class");
    core::fail_usage({.what = is_file(path) ? "a file" : "no such folder",
                      .where = path,
                      .expected = "a folder with one folder per class",
                      .fix = "give the folder above those of the classes"});
  }
  return Scan{path}.run();
}

}  // namespace lockstep::data
