#include "data/importers/image_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <span>
#include <system_error>

#include "core/ascii.hpp"
#include "data/format/known_formats.hpp"

namespace lockstep::data {
namespace {

struct Ending {
  std::string_view text;
  ImageFormat format;
};

constexpr std::array endings{Ending{".jpg", ImageFormat::jpeg}, Ending{".jpeg", ImageFormat::jpeg},
                             Ending{".png", ImageFormat::png}, Ending{".ppm", ImageFormat::pnm},
                             Ending{".pgm", ImageFormat::pnm}};

constexpr std::array<std::string_view, 23> other_endings{
    ".apng", ".avif", ".bmp", ".dcm", ".dng", ".exr", ".gif", ".heic", ".heif", ".j2k",  ".jfif", ".jp2",
    ".jpe",  ".jxl",  ".mpo", ".pbm", ".pnm", ".psd", ".svg", ".tga",  ".tif",  ".tiff", ".webp"};

std::string_view ending_of(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string_view{} : name.substr(dot);
}

}  // namespace

std::optional<ImageFormat> format_named(std::string_view path) {
  const std::string_view ending = ending_of(path);
  const auto found =
      std::ranges::find_if(endings, [&](const Ending& known) { return core::equal_ignoring_case(ending, known.text); });
  return found == endings.end() ? std::nullopt : std::optional{found->format};
}

bool is_other_image_name(std::string_view name) {
  const std::string_view ending = ending_of(name);
  return std::ranges::any_of(other_endings,
                             [&](std::string_view known) { return core::equal_ignoring_case(ending, known); });
}

bool is_hidden_name(std::string_view name) { return name.starts_with('.') || name == "__MACOSX"; }

bool is_hidden_image_name(std::string_view name) {
  return !name.starts_with("._") && (format_named(name) || is_other_image_name(name));
}

std::string describe_content(const std::string& path) {
  std::string head(known_format_bytes, '\0');
  std::error_code error;
  std::ifstream file;
  if (std::filesystem::is_regular_file(path, error)) file.open(path, std::ios::binary);
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  const auto format = recognise_format(std::as_bytes(std::span{head}));
  if (!format)
    return head.starts_with("P5") || head.starts_with("P6") ? "this is PPM or PGM: let its name end in .ppm"
                                                            : "convert it to PNG or JPEG";
  if (format->name == "JPEG") return "this is JPEG: let its name end in .jpg";
  if (format->name == "PNG") return "this is PNG: let its name end in .png";
  return fmt::format("this is {}: {}", format->name, format->remedy);
}

}  // namespace lockstep::data
