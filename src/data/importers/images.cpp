#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <utility>

#include "core/error.hpp"
#include "core/suggest.hpp"
#include "data/format/label.hpp"
#include "data/format/names.hpp"
#include "data/image/image.hpp"
#include "data/importers/image_folder.hpp"
#include "data/importers/image_names.hpp"
#include "data/importers/importers.hpp"
#include "io/file.hpp"

namespace lockstep::data {
namespace {

struct Size {
  std::uint64_t height = 0;
  std::uint64_t width = 0;
  bool operator==(const Size&) const = default;
};

/// What becomes of an image of some size: resized as a whole, of which a box is kept.
struct Plan {
  Size resized{};
  Size kept{};
};

// The longer side is rounded down, as torchvision's Resize does.
Plan plan_for(const Image& image, const ImportOptions& options) {
  Plan plan{.resized = {image.height, image.width}};
  if (options.resize > 0) {
    const std::uint64_t shorter = std::min(image.height, image.width);
    plan.resized = {image.height * options.resize / shorter, image.width * options.resize / shorter};
  }
  plan.kept = options.crop > 0 ? Size{options.crop, options.crop} : plan.resized;
  return plan;
}

void read_whole(const std::string& path, std::vector<std::byte>& bytes) {
  const io::File file{path};
  bytes.resize(file.size().value);
  file.read_at(0, bytes);
}

void copy_box(const Image& image, std::uint64_t top, std::uint64_t left, Size kept, std::span<std::byte> out) {
  const std::uint64_t row_bytes = kept.width * image.channels;
  for (std::uint64_t y = 0; y < kept.height; ++y) {
    const auto begin = ((top + y) * image.width + left) * image.channels;
    std::copy_n(image.pixels.data() + begin, row_bytes, out.data() + y * row_bytes);
  }
}

const char* plural_of(std::uint64_t n) { return n == 1 ? "" : "s"; }

/// What images go through, by its place in a Tally.
struct Treatment {
  bool (*has)(const ImageFacts& facts, std::string_view path);
  Remark::Kind kind;
  std::string_view text;
};

constexpr std::array<Treatment, 14> treatments{{
    {[](const ImageFacts& facts, auto) { return facts.orientation != 1; }, Remark::Kind::changed,
     "turned upright by their EXIF or XMP orientation; --keep-orientation takes pixels as stored"},
    {[](const ImageFacts& facts, auto) { return facts.white != 255; }, Remark::Kind::changed,
     "scaled to 8 bits from another depth: their white becomes 255"},
    {[](const ImageFacts& facts, auto) { return facts.is_gray; }, Remark::Kind::changed,
     "in gray: each becomes RGB with three equal channels; --gray stores one channel"},
    {[](const ImageFacts& facts, auto) { return facts.has_palette; }, Remark::Kind::changed,
     "with a palette: the colours of its entries are taken, not their numbers"},
    {[](const ImageFacts& facts, auto) { return facts.has_alpha; }, Remark::Kind::left_out,
     "with transparency: it is left out, colours stay as stored"},
    {[](const ImageFacts& facts, auto) { return facts.has_inks; }, Remark::Kind::changed,
     "converted from CMYK, inverted as Adobe's programs write it, to RGB"},
    {[](const ImageFacts& facts, auto) { return facts.has_profile; }, Remark::Kind::left_out,
     "with a colour profile (ICC): it is not applied, colours stay as stored"},
    {[](const ImageFacts& facts, auto) { return facts.has_gamma; }, Remark::Kind::left_out,
     "with a gamma other than that of sRGB: it is not applied, colours stay as stored"},
    {[](const ImageFacts& facts, auto) { return facts.has_fewer_bits; }, Remark::Kind::note,
     "with fewer significant bits than are stored (sBIT): values stay as stored"},
    {[](const ImageFacts& facts, auto) { return facts.is_animated; }, Remark::Kind::left_out,
     "with an animation (APNG): the picture for programs without animation is taken alone"},
    {[](const ImageFacts& facts, auto) { return facts.has_more_pictures; }, Remark::Kind::left_out,
     "with more pictures in the file (MPF), such as of depth or brightness: the first is taken alone"},
    {[](const ImageFacts& facts, auto) { return facts.has_data_behind; }, Remark::Kind::left_out,
     "with data behind the end of the picture, such as another picture: it is not read"},
    {[](const ImageFacts& facts, auto) { return facts.has_other_orientation; }, Remark::Kind::note,
     "whose orientation differs in EXIF and XMP: that of EXIF is taken"},
    {[](const ImageFacts& facts, std::string_view path) { return format_named(path) != facts.format; },
     Remark::Kind::note, "in another format than the name says: the content counts"},
}};
static_assert(treatments.size() <= std::tuple_size_v<Tally>);

/// Memory of one thread, kept from image to image: fresh memory costs as much as a third of the decoding.
struct Decoder {
  std::vector<std::byte> file{};
  Image image{};
  Tally tally{};
};

Decoder& decoder() {
  thread_local Decoder kept;
  return kept;
}

class ImagesSource final : public Source {
 public:
  ImagesSource(const std::string& path, const ImportOptions& options)
      : options_{options}, folder_{scan_image_folder(path)} {
    check_options();
    spec_.y = {label_dtype(folder_.classes.size()), {}};
    spec_.classes = folder_.classes;
    spec_.x = {core::DType::uint8, {}};
    if (options.keep_encoded) {
      spec_.encoding = "image";
    } else {
      size_ = options.crop > 0 ? Size{options.crop, options.crop} : size_of_first();
      spec_.x.shape = {size_.height, size_.width, channels()};
    }
  }

  [[nodiscard]] const SetSpec& spec() const override { return spec_; }

  [[nodiscard]] std::vector<SourceSplit> splits() const override {
    std::vector<SourceSplit> splits;
    for (const ImageList& list : folder_.splits) splits.push_back({list.name(), list.size()});
    return splits;
  }

  void read(std::size_t split, std::uint64_t first, std::uint64_t n, std::span<std::byte> x,
            std::span<std::byte> y) override {
    const std::uint64_t x_bytes = spec_.x.bytes(), y_bytes = spec_.y.bytes();
    for (std::uint64_t i = 0; i < n; ++i)
      read_one(split, first + i, x.subspan(i * x_bytes, x_bytes), y.subspan(i * y_bytes, y_bytes));
  }

  [[nodiscard]] std::size_t n_readers() const override { return options_.n_threads; }

  // Decoded once here, so that damage is found now and not in the middle of a training.
  std::vector<std::byte> read_encoded(std::size_t split, std::uint64_t index, std::span<std::byte> y) override {
    const ImageList& list = folder_.splits.at(split);
    const std::string path = list.path(index);
    load(path, index);
    count_treatments(split, index, path);
    store_label(list.label(index), y);
    return decoder().file;
  }

  /// The file, within the folder.
  [[nodiscard]] std::string name_of(std::size_t split, std::uint64_t index) const override {
    return folder_.splits.at(split).path(index).substr(folder_.root.size() + 1);
  }

  [[nodiscard]] std::vector<Remark> remarks() const override {
    std::vector<Remark> remarks;
    tell_left_out(remarks);
    if (const std::size_t n = folder_.composed.size(); n > 0)
      remarks.push_back(changed(fmt::format(
          "{} class name{} in another form of Unicode {} converted to the composed form (NFC), such as '{}'", n,
          plural_of(n), n == 1 ? "is" : "are", *folder_.composed.begin())));
    if (folder_.is_val_from_test)
      remarks.push_back(assumed("there is no folder val: the images of test are the split val"));
    doubt_class_names(remarks);
    return remarks;
  }

  [[nodiscard]] Tally take_tally() override { return std::exchange(decoder().tally, {}); }

  [[nodiscard]] std::vector<Remark> remarks_on(const Tally& all) const override {
    std::vector<Remark> remarks;
    for (std::size_t i = 0; i < treatments.size(); ++i) {
      const auto& [n, split, index] = all[i];
      if (n == 0) continue;
      const std::string images = fmt::format("{} image{}", n, plural_of(n));
      const std::string example = fmt::format("{}{}", n == 1 ? "it is " : "the first is ", name_of(split, index));
      remarks.push_back({treatments[i].kind, fmt::format("{} {} ({})", images, treatments[i].text, example)});
      if (i == 0 && options_.keep_orientation)
        remarks.back() =
            left_out(fmt::format("the orientation of {}, as --keep-orientation asks ({})", images, example));
    }
    return remarks;
  }

 private:
  void tell_left_out(std::vector<Remark>& remarks) const {
    const CountedPaths &ignored = folder_.ignored, &unread = folder_.unread, &hidden = folder_.hidden;
    const auto more = [](const CountedPaths& paths) { return paths.n == 1 ? "" : ", ..."; };
    if (ignored.n > 0)
      remarks.push_back(
          left_out(fmt::format("{} file{} not named as JPEG, PNG, PPM or PGM, or not in a class folder: {}{}",
                               ignored.n, plural_of(ignored.n), ignored.first, more(ignored))));
    if (const CountedPaths& splits = folder_.other_splits; splits.n > 0)
      remarks.push_back(left_out(fmt::format(
          "{} folder{} beside train with folders of its classes: {}{}; splits are called train, val and test", splits.n,
          plural_of(splits.n), splits.first, more(splits))));
    if (unread.n > 0)
      remarks.push_back(left_out(fmt::format("{} image{} not named as JPEG, PNG, PPM or PGM: {} ({}){}", unread.n,
                                             plural_of(unread.n), unread.first,
                                             describe_content(folder_.root + "/" + unread.first), more(unread))));
    if (const CountedPaths& images = folder_.hidden_images; hidden.n > 0)
      remarks.push_back(left_out(fmt::format("{} hidden file{} or folder{} (named with a dot, or __MACOSX){}: {}{}",
                                             hidden.n, plural_of(hidden.n), plural_of(hidden.n),
                                             images.n == 0 ? "" : fmt::format(", {} of them with images", images.n),
                                             images.n == 0 ? hidden.first : images.first, more(hidden))));
    if (const CountedPaths& unreadable = folder_.unreadable; unreadable.n > 0)
      remarks.push_back(warning(
          fmt::format("{} folder{} beside the images cannot be listed, so {} files are left out: {}", unreadable.n,
                      plural_of(unreadable.n), unreadable.n == 1 ? "its" : "their", unreadable.first)));
  }

  // Where images are in no folder of a class, folders of splits and of other content look like one.
  void doubt_class_names(std::vector<Remark>& remarks) const {
    constexpr std::array<std::string_view, 14> others{"train", "training", "val",    "valid",      "validation",
                                                      "test",  "testing",  "eval",   "dev",        "images",
                                                      "imgs",  "masks",    "labels", "annotations"};
    std::vector<std::string> found;
    for (const std::string& name : folder_.classes)
      if (std::ranges::find(others, without_slips(name)) != others.end()) found.push_back(name);
    if (found.size() > 1)
      remarks.push_back(warning(fmt::format(
          "classes are called {}, as folders of another kind are: each split needs a folder per class with its images",
          core::join(found))));
  }

  [[nodiscard]] std::uint64_t channels() const noexcept { return options_.gray ? 1 : 3; }

  void check_options() const {
    if (options_.resize > 0 && options_.crop > options_.resize) {
      core::fail_usage(
          {.what = fmt::format("a crop to {} of images whose shorter side is {}", options_.crop, options_.resize),
           .where = "--crop",
           .expected = fmt::format("at most {}, the value of --resize", options_.resize),
           .fix = fmt::format("--resize {}, or a smaller --crop", options_.crop)});
    }
  }

  void read_one(std::size_t split, std::uint64_t index, std::span<std::byte> x, std::span<std::byte> y) const {
    const ImageList& list = folder_.splits.at(split);
    const std::string path = list.path(index);
    place(load(path, index), path, x);
    count_treatments(split, index, path);
    store_label(list.label(index), y);
  }

  // Until the next call of this thread.
  const Image& load(const std::string& path, std::uint64_t index) const {
    auto& [file, image, tally] = decoder();
    read_whole(path, file);
    try {
      decode_image(file,
                   {.channels = channels(),
                    .at_least = options_.resize,
                    .keeps_orientation = options_.keep_orientation,
                    .white = options_.white > 0 ? options_.white : white_of_16_bits},
                   image);
      refuse_doubtful_white(image.facts, path);
      return image;
    } catch (const ImageError& error) {
      throw BadSample{index, path + ": " + error.reason};
    }
  }

  // OpenCV would divide by 256, torchvision and Pillow cut at 255: either is right for some files only. What uses the
  // upper half of the 16 bits has all of them; of anything else, the user knows how many bits it has.
  void refuse_doubtful_white(const ImageFacts& facts, const std::string& path) const {
    const bool is_doubtful = options_.white == 0 && facts.white == white_of_16_bits && facts.highest <= facts.white / 2;
    if (!is_doubtful) return;
    core::fail_usage(
        {.what = fmt::format("an image of 16 bits whose values go up to {}: which value is white is not known",
                             facts.highest),
         .where = path,
         .expected = fmt::format("values above {}, or --white", facts.white / 2),
         .fix = "say which value becomes 255: --white 1023 for 10 bits, 4095 for 12 bits, 65535 for all 16"});
  }

  // Adds what was done to the image that this thread has just loaded.
  static void count_treatments(std::size_t split, std::uint64_t index, std::string_view path) {
    Decoder& kept = decoder();
    for (std::size_t i = 0; i < treatments.size(); ++i)
      if (treatments[i].has(kept.image.facts, path)) add(kept.tally[i], {.n = 1, .split = split, .index = index});
  }

  // Decodes the first image that can be decoded: a damaged one may be meant to be skipped.
  [[nodiscard]] Size size_of_first() {
    const ImageList& list = folder_.splits.front();
    std::string first_damage;
    for (std::uint64_t i = 0; i < list.size(); ++i) {
      const std::string path = list.path(i);
      try {
        return plan_for(load(path, i), options_).kept;
      } catch (const BadSample& bad) {
        if (first_damage.empty()) first_damage = bad.what();
      }
    }
    core::fail_usage({.what = "none of the images can be decoded",
                      .where = first_damage,
                      .expected = "JPEG, PNG, PPM or PGM files",
                      .fix = "convert the images, or fetch them again, as the message about the first one says"});
  }

  void place(const Image& image, const std::string& path, std::span<std::byte> out) const {
    const Plan plan = plan_for(image, options_);
    if (plan.kept != size_ || plan.kept.height > plan.resized.height || plan.kept.width > plan.resized.width) {
      fail_size(plan, path);
    }
    const std::uint64_t top = (plan.resized.height - plan.kept.height) / 2;
    const std::uint64_t left = (plan.resized.width - plan.kept.width) / 2;
    if (plan.resized == Size{image.height, image.width}) {
      copy_box(image, top, left, plan.kept, out);
      return;
    }
    // Only what is kept is computed.
    const auto scale_y = static_cast<double>(image.height) / static_cast<double>(plan.resized.height);
    const auto scale_x = static_cast<double>(image.width) / static_cast<double>(plan.resized.width);
    const Box box{static_cast<double>(top) * scale_y, static_cast<double>(left) * scale_x,
                  static_cast<double>(plan.kept.height) * scale_y, static_cast<double>(plan.kept.width) * scale_x};
    resize(image.pixels, image.height, image.width, image.channels, box, plan.kept.height, plan.kept.width, out);
  }

  [[noreturn]] void fail_size(const Plan& plan, const std::string& path) const {
    const std::string expected = options_.crop > 0
                                     ? fmt::format("at least {0} x {0}, to crop it to that", options_.crop)
                                     : fmt::format("{} x {}, like the first image", size_.height, size_.width);
    core::fail_usage(
        {.what = fmt::format("an image of {} x {} pixels (height x width)", plan.resized.height, plan.resized.width),
         .where = path,
         .expected = expected,
         .fix = "bring all to one size by --resize and --crop, such as --resize 64 --crop 64"});
  }

  ImportOptions options_;
  ImageFolder folder_;
  SetSpec spec_{};
  Size size_{};
};

}  // namespace

std::unique_ptr<Source> open_images(const std::string& path, const ImportOptions& options) {
  return std::make_unique<ImagesSource>(path, options);
}

}  // namespace lockstep::data
