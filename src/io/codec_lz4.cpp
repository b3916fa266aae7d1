#include <lz4.h>
#include <lz4hc.h>

#include <algorithm>

#include "core/error.hpp"
#include "io/codecs.hpp"

// Format of the registered filter: numbers are big-endian; 8 bytes: size of the data, 4 bytes: size of a block; then
// for each block 4 bytes: its stored size, and the block. A block that did not shrink is stored uncompressed.

namespace lockstep::io {
namespace {

constexpr std::size_t header_bytes = 12;
constexpr std::size_t count_bytes = 4;
constexpr std::size_t block_bytes = std::size_t{1} << 30;  // the filter's default

template <std::size_t n_bytes>
void store(std::uint64_t value, std::byte* to) noexcept {
  for (std::size_t i = n_bytes; i-- > 0; value >>= 8) to[i] = static_cast<std::byte>(value);
}

/// Takes a number from the front of `from`, which is long enough.
template <std::size_t n_bytes>
std::uint64_t take(std::span<const std::byte>& from) noexcept {
  std::uint64_t value = 0;
  for (const std::byte byte : from.first<n_bytes>()) value = value << 8 | static_cast<std::uint64_t>(byte);
  from = from.subspan(n_bytes);
  return value;
}

const char* chars(const std::byte* bytes) noexcept { return reinterpret_cast<const char*>(bytes); }
char* chars(std::byte* bytes) noexcept { return reinterpret_cast<char*>(bytes); }

/// Writes `block` to `to`, which has room for LZ4_compressBound of it; returns the stored size.
std::size_t pack_block(int level, std::span<const std::byte> block, std::byte* to) {
  const int n = static_cast<int>(block.size());
  const int room = LZ4_compressBound(n);
  const int n_packed = level > 0 ? LZ4_compress_HC(chars(block.data()), chars(to), n, room, level)
                                 : LZ4_compress_default(chars(block.data()), chars(to), n, room);
  if (n_packed > 0 && n_packed < n) return static_cast<std::size_t>(n_packed);
  std::ranges::copy(block, to);
  return block.size();
}

bool unpack_block(std::span<const std::byte> packed, std::span<std::byte> block) noexcept {
  if (packed.size() == block.size()) {
    std::ranges::copy(packed, block.begin());
    return true;
  }
  const int n = LZ4_decompress_safe(chars(packed.data()), chars(block.data()), static_cast<int>(packed.size()),
                                    static_cast<int>(block.size()));
  return n >= 0 && static_cast<std::size_t>(n) == block.size();
}

}  // namespace

std::vector<std::byte> pack_lz4(int level, std::span<const std::byte> data) {
  core::require(data.size() <= most_chunk_bytes, "a chunk is smaller than 4 GiB");
  const std::size_t block_size = std::min(data.size(), block_bytes);
  const std::size_t n_blocks = data.empty() ? 0 : (data.size() - 1) / block_size + 1;
  const auto bound = static_cast<std::size_t>(LZ4_compressBound(static_cast<int>(block_size)));
  std::vector<std::byte> packed(header_bytes + n_blocks * (count_bytes + bound));
  store<8>(data.size(), packed.data());
  store<4>(block_size, packed.data() + 8);
  std::size_t end = header_bytes;
  while (!data.empty()) {
    const auto block = data.first(std::min(data.size(), block_size));
    const std::size_t n = pack_block(level, block, packed.data() + end + count_bytes);
    store<4>(n, packed.data() + end);
    end += count_bytes + n;
    data = data.subspan(block.size());
  }
  packed.resize(end);
  return packed;
}

std::optional<std::size_t> unpacked_size_lz4(std::span<const std::byte> packed) {
  if (packed.size() < header_bytes) return std::nullopt;
  const std::uint64_t size = take<8>(packed);
  if (size > most_chunk_bytes) return std::nullopt;
  return static_cast<std::size_t>(size);
}

bool unpack_lz4(std::span<const std::byte> packed, std::span<std::byte> data) {
  if (unpacked_size_lz4(packed) != data.size()) return false;
  packed = packed.subspan(8);
  const std::uint64_t block_size = take<4>(packed);
  if (block_size > LZ4_MAX_INPUT_SIZE || (block_size == 0 && !data.empty())) return false;
  while (!data.empty()) {
    if (packed.size() < count_bytes) return false;
    const std::uint64_t n_packed = take<4>(packed);
    const auto block = data.first(std::min<std::uint64_t>(block_size, data.size()));
    if (n_packed > packed.size() || n_packed > LZ4_MAX_INPUT_SIZE + std::uint64_t{1} ||
        !unpack_block(packed.first(n_packed), block)) {
      return false;
    }
    packed = packed.subspan(n_packed);
    data = data.subspan(block.size());
  }
  return packed.empty();
}

}  // namespace lockstep::io
