#include "io/codec.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "io/codecs.hpp"
#include "io/shuffle.hpp"

namespace lockstep::io {
namespace {

/// Memory for a shuffled chunk, kept by each thread, because chunks of one set have one size.
std::span<std::byte> scratch(std::size_t bytes) {
  thread_local std::vector<std::byte> memory;
  if (memory.size() < bytes) memory.resize(bytes);
  return std::span{memory}.first(bytes);
}

bool unpack_shuffled(Filter filter, std::span<const std::byte> stored, std::span<std::byte> data) {
  return filter == Filter::zstd ? unpack_zstd(stored, data) : unpack_lz4(stored, data);
}

int highest_level(Filter filter) noexcept {
  switch (filter) {
    case Filter::none: return 0;
    case Filter::deflate: return 9;
    case Filter::zstd: return 22;
    case Filter::lz4: break;
  }
  return 12;
}

void check_level(Filter filter, int level) {
  if (level >= 0 && level <= highest_level(filter)) return;
  core::fail_usage({.what = fmt::format("{} has no compression level {}", name(filter), level),
                    .expected = fmt::format("0 to {}; 0 is the default", highest_level(filter))});
}

}  // namespace

std::string_view name(Filter filter) noexcept {
  switch (filter) {
    case Filter::none: return "none";
    case Filter::deflate: return "deflate";
    case Filter::zstd: return "zstd";
    case Filter::lz4: break;
  }
  return "lz4";
}

std::optional<Filter> find_filter(std::string_view word) noexcept {
  const auto* const found = std::ranges::find(all_filters, word, [](Filter filter) { return name(filter); });
  return found != all_filters.end() ? std::optional{*found} : std::nullopt;
}

std::vector<std::byte> encode(Filter filter, int level, std::size_t element_size, std::span<const std::byte> chunk) {
  if (filter == Filter::none) return {chunk.begin(), chunk.end()};
  check_level(filter, level);
  if (filter == Filter::deflate) return pack_deflate(level, chunk);
  std::span<const std::byte> shuffled = chunk;
  if (element_size > 1) {
    const std::span<std::byte> memory = scratch(chunk.size());
    shuffle(element_size, chunk, memory);
    shuffled = memory;
  }
  return filter == Filter::zstd ? pack_zstd(level, shuffled) : pack_lz4(level, shuffled);
}

bool decode(Filter filter, std::size_t element_size, std::span<const std::byte> stored, std::span<std::byte> chunk) {
  if (filter == Filter::deflate) return unpack_deflate(stored, chunk);
  if (filter == Filter::none) {
    if (stored.size() != chunk.size()) return false;
    std::ranges::copy(stored, chunk.begin());
    return true;
  }
  if (element_size <= 1) return unpack_shuffled(filter, stored, chunk);
  const std::span<std::byte> shuffled = scratch(chunk.size());
  if (!unpack_shuffled(filter, stored, shuffled)) return false;
  unshuffle(element_size, shuffled, chunk);
  return true;
}

}  // namespace lockstep::io
