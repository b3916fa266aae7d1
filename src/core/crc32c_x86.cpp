#include <immintrin.h>

#include <cstring>

#include "core/crc32c_paths.hpp"

// The instruction takes one word a cycle but answers after three, so three lanes of the data are in flight at once and
// then folded into one register (Gopal et al. 2011, "Fast CRC computation for iSCSI polynomial using CRC32 instruction").
#define LOCKSTEP_CRC_TARGET gnu::target("sse4.2,pclmul")

namespace lockstep::core {
namespace {

[[LOCKSTEP_CRC_TARGET]] inline std::uint64_t step(std::uint64_t crc, const std::byte* bytes) noexcept {
  std::uint64_t word;
  std::memcpy(&word, bytes, sizeof(word));
  return _mm_crc32_u64(crc, word);
}

/// The product without carries; as polynomials, lowest bit first, it is a * b * x.
[[LOCKSTEP_CRC_TARGET]] inline std::uint64_t multiply(std::uint64_t a, std::uint32_t b) noexcept {
  const __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<long long>(a)), _mm_cvtsi64_si128(b), 0);
  return static_cast<std::uint64_t>(_mm_cvtsi128_si64(product));
}

/// Takes as many triples of lanes off the front of `data` as there are.
template <std::uint32_t lane_bytes>
[[LOCKSTEP_CRC_TARGET]] std::uint32_t take_lanes(std::uint32_t crc, std::span<const std::byte>& data) noexcept {
  // Moving a register past n bytes multiplies it by x^8n; the x of multiply() and the x^32 of the reduction come free.
  constexpr std::uint32_t past_one = crc32c_power(8 * lane_bytes - 33);
  constexpr std::uint32_t past_two = crc32c_power(16 * lane_bytes - 33);
  for (; data.size() >= 3 * lane_bytes; data = data.subspan(3 * lane_bytes)) {
    const std::byte* const bytes = data.data();
    std::uint64_t first = crc;
    std::uint64_t second = 0;
    std::uint64_t third = 0;
    for (std::size_t i = 0; i < lane_bytes; i += 8) {
      first = step(first, bytes + i);
      second = step(second, bytes + lane_bytes + i);
      third = step(third, bytes + 2 * lane_bytes + i);
    }
    const std::uint64_t folded = _mm_crc32_u64(0, multiply(first, past_two) ^ multiply(second, past_one));
    crc = static_cast<std::uint32_t>(folded ^ third);
  }
  return crc;
}

[[LOCKSTEP_CRC_TARGET]] std::uint32_t crc32c_by_lanes(std::uint32_t crc, std::span<const std::byte> data) noexcept {
  crc = take_lanes<1024>(crc, data);
  crc = take_lanes<128>(crc, data);
  std::uint64_t wide = crc;
  for (; data.size() >= 8; data = data.subspan(8)) wide = step(wide, data.data());
  crc = static_cast<std::uint32_t>(wide);
  for (const std::byte byte : data) crc = _mm_crc32_u8(crc, static_cast<unsigned char>(byte));
  return crc;
}

}  // namespace

Crc32cPath crc32c_by_instructions() noexcept {
  __builtin_cpu_init();
  const bool has_both = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
  return has_both ? &crc32c_by_lanes : nullptr;
}

}  // namespace lockstep::core
