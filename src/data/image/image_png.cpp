#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "data/image/image_decoders.hpp"
#include "data/image/image_metadata.hpp"

namespace lockstep::data {
namespace {

void read_bytes(png_structp png, png_bytep out, std::size_t n);
[[noreturn]] void on_error(png_structp png, png_const_charp message);
void on_warning(png_structp, png_const_charp) {}

// libpng leaves by longjmp, which must not pass over anything with a destructor: so everything lives here, and the two
// members that call the library have none.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> file) : file_{file}, rest_{file} {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) {
      png_destroy_read_struct(&png_, nullptr, nullptr);
      core::fail_system("png_create_read_struct failed");
    }
    png_set_read_fn(png_, this, read_bytes);
  }
  ~Reader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  /// `white` is that of 16 bits.
  void read(std::uint32_t white, Image& image) {
    if (!read_header()) fail();
    reshape(image, png_get_image_height(png_, info_), png_get_image_width(png_, info_), png_get_channels(png_, info_));
    const std::size_t bytes = png_get_bit_depth(png_, info_) == 16 ? 2 : 1;
    const std::uint64_t row_bytes = image.width * image.channels * bytes;
    core::require(png_get_rowbytes(png_, info_) == row_bytes, "PNG rows are gray or RGB of 8 or 16 bits");
    std::vector<std::byte> wide(bytes == 1 ? 0 : image.height * row_bytes);
    std::byte* const pixels = bytes == 1 ? image.pixels.data() : wide.data();
    rows_.resize(image.height);
    for (std::uint64_t y = 0; y < image.height; ++y) rows_[y] = reinterpret_cast<png_bytep>(pixels + y * row_bytes);
    if (!read_rows()) fail();
    image.facts = facts_;
    look_into_png(file_, image.facts);
    if (bytes == 1) return;
    image.facts.white = white;
    scale_to_white(wide, bytes, image);
  }

  [[nodiscard]] bool take(png_bytep out, std::size_t n) noexcept {
    if (n > rest_.size()) return false;
    std::memcpy(out, rest_.data(), n);
    rest_ = rest_.subspan(n);
    return true;
  }
  void set_reason(const char* reason) { reason_ = reason; }

 private:
  [[noreturn]] void fail() const { throw ImageError{fmt::format("damaged PNG: {}", reason_)}; }

  // To 8 or 16 bits per channel, gray or RGB. Transparency is left out, not blended with a background of our choice.
  bool read_header() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_crc_action(png_, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
    png_read_info(png_, info_);
    png_set_expand(png_);
    note_facts();
    png_set_strip_alpha(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    return true;
  }

  void note_facts() {
    const auto has = [this](png_uint_32 chunk) { return png_get_valid(png_, info_, chunk) != 0; };
    const bool has_palette = png_get_color_type(png_, info_) == PNG_COLOR_TYPE_PALETTE;
    const bool is_gray = (png_get_color_type(png_, info_) & PNG_COLOR_MASK_COLOR) == 0;
    facts_.has_palette = has_palette;
    if (is_gray && png_get_bit_depth(png_, info_) < 8) facts_.white = (1U << png_get_bit_depth(png_, info_)) - 1;
    facts_.has_alpha = (png_get_color_type(png_, info_) & PNG_COLOR_MASK_ALPHA) != 0 || has(PNG_INFO_tRNS);
    facts_.has_profile = has(PNG_INFO_iCCP);
    constexpr png_fixed_point gamma_of_srgb = 45455, tolerance = 500;
    png_fixed_point gamma = gamma_of_srgb;
    if (!facts_.has_profile && !has(PNG_INFO_sRGB)) png_get_gAMA_fixed(png_, info_, &gamma);
    facts_.has_gamma = gamma < gamma_of_srgb - tolerance || gamma > gamma_of_srgb + tolerance;
    png_color_8p bits = nullptr;
    const int depth = has_palette ? 8 : png_get_bit_depth(png_, info_);
    if (png_get_sBIT(png_, info_, &bits) == 0) return;
    const int fewest = is_gray ? bits->gray : std::min({bits->red, bits->green, bits->blue});
    facts_.has_fewer_bits = fewest < depth;
  }

  // To the end of the file, so that every check sum has been seen.
  bool read_rows() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_read_image(png_, rows_.data());
    png_read_end(png_, nullptr);
    return true;
  }

  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::span<const std::byte> file_;
  std::span<const std::byte> rest_;
  ImageFacts facts_{.format = ImageFormat::png};
  std::vector<png_bytep> rows_;
  std::string reason_;
};

void read_bytes(png_structp png, png_bytep out, std::size_t n) {
  if (!static_cast<Reader*>(png_get_io_ptr(png))->take(out, n)) png_error(png, "the file ends too early");
}

void on_error(png_structp png, png_const_charp message) {
  static_cast<Reader*>(png_get_error_ptr(png))->set_reason(message);
  png_longjmp(png, 1);
}

}  // namespace

void decode_png(std::span<const std::byte> file, const DecodeOptions& options, Image& image) {
  Reader{file}.read(options.white, image);
  convert_channels(image, options.channels);
}

}  // namespace lockstep::data
