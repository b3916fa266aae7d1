// What the names of files in image folders say: the format, and whether they are hidden.
// Invariant: no file is opened, except by describe_content().
// Used by data/importers/image_folder.cpp and images.cpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "data/image/image.hpp"

namespace lockstep::data {

/// By the ending .jpg, .jpeg, .png, .ppm or .pgm, in any case; nothing for other names, which are not read.
[[nodiscard]] std::optional<ImageFormat> format_named(std::string_view path);
/// Whether other programs take a file of this name for an image, though it is not read here (.webp, .tif).
[[nodiscard]] bool is_other_image_name(std::string_view name);
/// Those with a dot in front, and what macOS adds to zip archives.
[[nodiscard]] bool is_hidden_name(std::string_view name);
/// Whether a hidden file of this name may be a picture. "._NAME" is what macOS keeps beside NAME.
[[nodiscard]] bool is_hidden_image_name(std::string_view name);

/// Returns "this is WebP: convert it to PNG or JPEG", by the first bytes of a file whose name is not read; what is
/// to be done with it where they say nothing or cannot be read.
[[nodiscard]] std::string describe_content(const std::string& path);

}  // namespace lockstep::data
