#include <fmt/format.h>
#include <zstd.h>

#include <new>

#include "core/error.hpp"
#include "core/handle.hpp"
#include "io/codecs.hpp"

namespace lockstep::io {
namespace {

struct CompressorPolicy {
  using Raw = ZSTD_CCtx*;
  static Raw null() noexcept { return nullptr; }
  static void destroy(Raw raw) noexcept { ZSTD_freeCCtx(raw); }
};

struct DecompressorPolicy {
  using Raw = ZSTD_DCtx*;
  static Raw null() noexcept { return nullptr; }
  static void destroy(Raw raw) noexcept { ZSTD_freeDCtx(raw); }
};

}  // namespace

// A context has some hundred KiB and is expensive to set up, so each thread keeps one.

std::vector<std::byte> pack_zstd(int level, std::span<const std::byte> data) {
  thread_local const core::UniqueHandle<CompressorPolicy> context{ZSTD_createCCtx()};
  if (!context) throw std::bad_alloc{};
  std::vector<std::byte> packed(ZSTD_compressBound(data.size()));
  const std::size_t n = ZSTD_compressCCtx(context.get(), packed.data(), packed.size(), data.data(), data.size(),
                                          level == 0 ? ZSTD_CLEVEL_DEFAULT : level);
  if (ZSTD_isError(n) != 0) core::fail_system(fmt::format("zstd cannot compress: {}", ZSTD_getErrorName(n)));
  packed.resize(n);
  return packed;
}

bool unpack_zstd(std::span<const std::byte> packed, std::span<std::byte> data) {
  thread_local const core::UniqueHandle<DecompressorPolicy> context{ZSTD_createDCtx()};
  if (!context) throw std::bad_alloc{};
  const std::size_t n = ZSTD_decompressDCtx(context.get(), data.data(), data.size(), packed.data(), packed.size());
  return n == data.size() && !packed.empty();
}

std::optional<std::size_t> unpacked_size_zstd(std::span<const std::byte> packed) {
  const unsigned long long n = ZSTD_getFrameContentSize(packed.data(), packed.size());
  if (n == ZSTD_CONTENTSIZE_UNKNOWN || n == ZSTD_CONTENTSIZE_ERROR || n > most_chunk_bytes) return std::nullopt;
  return static_cast<std::size_t>(n);
}

}  // namespace lockstep::io
