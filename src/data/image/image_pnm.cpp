#include <fmt/format.h>

#include <algorithm>

#include "data/image/image_decoders.hpp"

namespace lockstep::data {
namespace {

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// The numbers of the header; a comment runs from '#' to the end of its line.
class PnmHeader {
 public:
  explicit PnmHeader(std::span<const std::byte> file) : file_{file} {}

  std::uint64_t number(const char* what) {
    skip_space_and_comments();
    std::uint64_t value = 0;
    const std::size_t begin = place_;
    for (; is_digit(); ++place_) {
      value = value * 10 + static_cast<std::uint64_t>(at(place_) - '0');
      if (value > most_pixels) throw ImageError{fmt::format("damaged PPM or PGM header: {} is too large", what)};
    }
    if (place_ == begin) throw ImageError{fmt::format("damaged PPM or PGM header: no {}", what)};
    return value;
  }

  // Exactly one blank separates header and pixels.
  std::span<const std::byte> rest() {
    if (place_ >= file_.size() || !is_space(at(place_))) throw ImageError{"damaged PPM or PGM header: it has no end"};
    return file_.subspan(place_ + 1);
  }

 private:
  [[nodiscard]] char at(std::size_t place) const { return static_cast<char>(file_[place]); }
  [[nodiscard]] bool is_digit() const { return place_ < file_.size() && at(place_) >= '0' && at(place_) <= '9'; }

  void skip_space_and_comments() {
    bool is_comment = false;
    for (; place_ < file_.size(); ++place_) {
      const char c = at(place_);
      if (is_comment ? c == '\n' || c == '\r' : c == '#') {
        is_comment = !is_comment;
      } else if (!is_comment && !is_space(c)) {
        return;
      }
    }
  }

  std::span<const std::byte> file_;
  std::size_t place_ = 2;  // after "P5" or "P6"
};

}  // namespace

// One image a file, as image data sets have it: bytes after its pixels mean that the header is damaged.
void decode_pnm(std::span<const std::byte> file, const DecodeOptions& options, Image& image) {
  PnmHeader header{file};
  const std::uint64_t width = header.number("width"), height = header.number("height");
  const std::uint64_t maximum = header.number("maximum");
  if (maximum == 0 || maximum > white_of_16_bits)
    throw ImageError{fmt::format("damaged PPM or PGM: a maximum of {}, expected 1 to {}", maximum, white_of_16_bits)};
  const std::span<const std::byte> pixels = header.rest();
  const std::uint64_t n_channels = static_cast<char>(file[1]) == '6' ? 3 : 1;
  const std::uint64_t bytes = maximum > 255 ? 2 : 1;
  if (height != 0 && width != 0 && height <= most_pixels / width &&
      height * width * n_channels * bytes != pixels.size()) {
    throw ImageError{fmt::format("damaged PPM or PGM: {} bytes of pixels, expected {}", pixels.size(),
                                 height * width * n_channels * bytes)};
  }
  reshape(image, height, width, n_channels);
  image.facts = {.white = maximum == white_of_16_bits ? options.white : static_cast<std::uint32_t>(maximum),
                 .format = ImageFormat::pnm};
  if (maximum == 255)
    std::copy(pixels.begin(), pixels.end(), image.pixels.begin());
  else
    scale_to_white(pixels, bytes, image);
  convert_channels(image, options.channels);
}

}  // namespace lockstep::data
