#include <immintrin.h>

#include <cstring>

#include "core/crc32c_paths.hpp"
#include "core/instruction_sets.hpp"

// The instruction starts one word per cycle but takes three, so three lanes of the data are processed at once and then
// folded into one register (Gopal et al. 2011, "Fast CRC computation for iSCSI polynomial using CRC32 instruction").
#define LOCKSTEP_CRC_TARGET gnu::target("sse4.2,pclmul")
// If one instruction makes four of those products, folding the data itself is even faster: 16 accumulators of 16 bytes,
// each moved past all others and added to the data there (Gopal et al. 2009, "Fast CRC computation for generic
// polynomials using PCLMULQDQ").
#define LOCKSTEP_CRC_WIDE_TARGET gnu::target("sse4.2,pclmul,avx512f,vpclmulqdq")

namespace lockstep::core {
namespace {

[[LOCKSTEP_CRC_TARGET]] inline std::uint64_t step(std::uint64_t crc, const std::byte* bytes) noexcept {
  std::uint64_t word;
  std::memcpy(&word, bytes, sizeof(word));
  return _mm_crc32_u64(crc, word);
}

/// The product without carries; for polynomials with the lowest bit first, it is a * b * x.
[[LOCKSTEP_CRC_TARGET]] inline std::uint64_t multiply(std::uint64_t a, std::uint32_t b) noexcept {
  const __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<long long>(a)), _mm_cvtsi64_si128(b), 0);
  return static_cast<std::uint64_t>(_mm_cvtsi128_si64(product));
}

/// Consumes as many triples of lanes from the front of `data` as there are.
template <std::uint32_t lane_bytes>
[[LOCKSTEP_CRC_TARGET]] std::uint32_t take_lanes(std::uint32_t crc, std::span<const std::byte>& data) noexcept {
  // Moving a register past n bytes multiplies it by x^8n; the x of multiply() and the x^32 of the reduction are free.
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

/// Factors that move 16 bytes past `bits` more: for the first half (low) and the second.
[[LOCKSTEP_CRC_WIDE_TARGET]] inline __m512i factors_past(std::uint64_t first, std::uint64_t second) noexcept {
  return _mm512_set4_epi64(static_cast<long long>(second), static_cast<long long>(first),
                           static_cast<long long>(second), static_cast<long long>(first));
}

constexpr std::uint64_t factor(std::uint32_t bits) noexcept {
  return static_cast<std::uint64_t>(crc32c_power(bits - 1)) << 32;  // the x of the product is free
}

[[LOCKSTEP_CRC_WIDE_TARGET]] inline __m512i fold(__m512i sum, __m512i factors, __m512i data) noexcept {
  constexpr int all_xored = 0x96;
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(sum, factors, 0x00),
                                   _mm512_clmulepi64_epi128(sum, factors, 0x11), data, all_xored);
}

[[LOCKSTEP_CRC_WIDE_TARGET]] inline __m128i fold(__m128i sum, __m128i factors, __m128i data) noexcept {
  return _mm_xor_si128(
      data, _mm_xor_si128(_mm_clmulepi64_si128(sum, factors, 0x00), _mm_clmulepi64_si128(sum, factors, 0x11)));
}

[[LOCKSTEP_CRC_WIDE_TARGET]] inline __m512i load(const std::byte* bytes) noexcept { return _mm512_loadu_si512(bytes); }

[[LOCKSTEP_CRC_WIDE_TARGET]] std::uint32_t crc32c_by_folding(std::uint32_t crc,
                                                             std::span<const std::byte> data) noexcept {
  if (data.size() < 512) return crc32c_by_lanes(crc, data);
  const __m512i start = _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(crc)));
  __m512i a = _mm512_xor_si512(start, load(data.data()));
  __m512i b = load(data.data() + 64), c = load(data.data() + 128), d = load(data.data() + 192);
  const __m512i past_four = factors_past(factor(64 + 4 * 512), factor(4 * 512));
  for (data = data.subspan(256); data.size() >= 256; data = data.subspan(256)) {
    a = fold(a, past_four, load(data.data()));
    b = fold(b, past_four, load(data.data() + 64));
    c = fold(c, past_four, load(data.data() + 128));
    d = fold(d, past_four, load(data.data() + 192));
  }
  const __m512i past_one = factors_past(factor(64 + 512), factor(512));
  d = fold(fold(fold(a, past_one, b), past_one, c), past_one, d);
  for (; data.size() >= 64; data = data.subspan(64)) d = fold(d, past_one, load(data.data()));

  const __m128i past_lane =
      _mm_set_epi64x(static_cast<long long>(factor(128)), static_cast<long long>(factor(64 + 128)));
  alignas(64) __m128i lanes[4];
  _mm512_store_si512(lanes, d);
  const __m128i sum = fold(fold(fold(lanes[0], past_lane, lanes[1]), past_lane, lanes[2]), past_lane, lanes[3]);
  const auto first = static_cast<std::uint64_t>(_mm_extract_epi64(sum, 0));
  const auto second = static_cast<std::uint64_t>(_mm_extract_epi64(sum, 1));
  return crc32c_by_lanes(static_cast<std::uint32_t>(_mm_crc32_u64(_mm_crc32_u64(0, first), second)), data);
}

}  // namespace

Crc32cPath crc32c_by_wide_instructions() noexcept {
  __builtin_cpu_init();
  const bool has_all = instruction_sets().avx512 && __builtin_cpu_supports("vpclmulqdq");
  return has_all ? &crc32c_by_folding : nullptr;
}

Crc32cPath crc32c_by_instructions() noexcept {
  __builtin_cpu_init();
  const bool has_both = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
  return has_both ? &crc32c_by_lanes : nullptr;
}

}  // namespace lockstep::core
