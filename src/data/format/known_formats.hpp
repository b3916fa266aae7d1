// Formats that users pass by mistake, recognised by their first bytes.
// Invariant: names of files are never used.
// Used by the readers of images and by importers, for their messages.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace lockstep::data {

struct KnownFormat {
  std::string_view name;    ///< "WebP"
  std::string_view remedy;  ///< "convert it to PNG or JPEG"
};

/// This many bytes of a file are enough.
inline constexpr std::size_t known_format_bytes = 512;

[[nodiscard]] std::optional<KnownFormat> recognise_format(std::span<const std::byte> head);

}  // namespace lockstep::data
