// The lines of manifest.json: its layout is fixed, so that equal sets have equal manifests.
// Invariant: one shard a line; the digest covers all bytes before its own line.
// Used by data/format/manifest and the fuzz target.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "data/format/manifest.hpp"

namespace lockstep::data {

inline constexpr std::string_view manifest_format = "lockstep-shards";
inline constexpr int manifest_version = 1;

/// The indentation of the line of a shard, and of no other line.
inline constexpr std::string_view shard_indent = "      ";

/// `body` followed by its digest: a whole manifest.
[[nodiscard]] std::string seal(std::string body);

/// A manifest split at its seal.
struct Sealed {
  std::string_view body;
  std::string_view digest;
};
/// Returns nothing if `text` does not end like a manifest.
[[nodiscard]] std::optional<Sealed> split_seal(std::string_view text);

}  // namespace lockstep::data
