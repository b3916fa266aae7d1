// AVX-512 VBMI: a table of 256 bytes is four vectors, looked up for 64 values by two permutations and a blend.
#include <immintrin.h>

#include "data/augment/planar.hpp"

namespace lockstep::data {
namespace {

constexpr std::size_t vector_bytes = 64;
constexpr std::size_t table_bytes = 256;
constexpr std::size_t most_channels = 4;

__m512i load(const void* from) { return _mm512_loadu_si512(from); }

/// 256 entries.
struct Table {
  explicit Table(const std::uint8_t* bytes)
      : entries{load(bytes), load(bytes + 64), load(bytes + 128), load(bytes + 192)} {}

  [[nodiscard]] __m512i look_up(__m512i levels) const {
    const __m512i low = _mm512_permutex2var_epi8(entries[0], levels, entries[1]);
    const __m512i high = _mm512_permutex2var_epi8(entries[2], levels, entries[3]);
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(levels), low, high);
  }

  __m512i entries[4];
};

/// std::min would be a weak symbol: the linker might keep this copy of it for all processors.
constexpr std::size_t least(std::size_t a, std::size_t b) { return a < b ? a : b; }

__mmask64 first_bytes(std::size_t n) { return n >= 64 ? ~__mmask64{0} : (__mmask64{1} << n) - 1; }

/// The pixels of a block, and which value goes to which byte, so that joining bytes within the quarters of a vector
/// puts elements in order.
struct Order {
  alignas(vector_bytes) std::uint8_t value[vector_bytes];
};

constexpr Order make_order(std::size_t element_bytes) {
  Order order{};
  const std::size_t run = 16 / element_bytes;  // elements in a quarter of a vector
  for (std::size_t p = 0; p < vector_bytes; ++p)
    order.value[p] = static_cast<std::uint8_t>(p % 16 / run * (4 * run) + p / 16 * run + p % run);
  return order;
}

constexpr Order order_of_4 = make_order(4), order_of_2 = make_order(2);

/// Gathers one channel of up to 64 pixels from `in`.
__m512i gather(const unsigned char* in, std::size_t n_bytes, std::size_t n_channels, __m512i places) {
  const __m512i first = _mm512_maskz_loadu_epi8(first_bytes(n_bytes), in);
  if (n_channels == 1) return _mm512_permutex2var_epi8(first, places, first);
  const auto rest = [&](std::size_t from) {
    return n_bytes > from ? _mm512_maskz_loadu_epi8(first_bytes(n_bytes - from), in + from) : _mm512_setzero_si512();
  };
  const __m512i low = _mm512_permutex2var_epi8(first, places, rest(64));
  const __m512i high = _mm512_permutex2var_epi8(rest(128), places, rest(192));
  return _mm512_mask_blend_epi8(_mm512_movepi8_mask(places), low, high);
}

void store_4(const Table* tables, __m512i levels, std::size_t n, std::byte* out) {
  __m512i byte[4];
  for (int i = 0; i < 4; ++i) byte[i] = tables[i].look_up(levels);
  const __m512i low01 = _mm512_unpacklo_epi8(byte[0], byte[1]), high01 = _mm512_unpackhi_epi8(byte[0], byte[1]);
  const __m512i low23 = _mm512_unpacklo_epi8(byte[2], byte[3]), high23 = _mm512_unpackhi_epi8(byte[2], byte[3]);
  const __m512i elements[4] = {_mm512_unpacklo_epi16(low01, low23), _mm512_unpackhi_epi16(low01, low23),
                               _mm512_unpacklo_epi16(high01, high23), _mm512_unpackhi_epi16(high01, high23)};
  for (std::size_t i = 0; i < 4 && n > 16 * i; ++i)
    _mm512_mask_storeu_epi8(out + vector_bytes * i, first_bytes(4 * (n - 16 * i)), elements[i]);
}

void store_2(const Table* tables, __m512i levels, std::size_t n, std::byte* out) {
  const __m512i low = tables[0].look_up(levels), high = tables[1].look_up(levels);
  _mm512_mask_storeu_epi8(out, first_bytes(2 * n), _mm512_unpacklo_epi8(low, high));
  if (n > 32) _mm512_mask_storeu_epi8(out + vector_bytes, first_bytes(2 * (n - 32)), _mm512_unpackhi_epi8(low, high));
}

template <std::size_t element_bytes>
void convert_channel(const PlanarRow& row, std::size_t channel, const Table* tables, std::byte* out) {
  const __m512i order = load(element_bytes == 4 ? order_of_4.value : order_of_2.value);
  const auto c = static_cast<char>(row.n_channels);
  __m512i forward = _mm512_setzero_si512();  // order x channels, in bytes
  for (char i = 0; i < c; ++i) forward = _mm512_add_epi8(forward, order);
  for (std::size_t done = 0; done < row.n; done += vector_bytes) {
    const std::size_t n = least(vector_bytes, row.n - done);
    const std::size_t first = row.is_flipped ? row.n - done - n : done;
    __m512i places = forward;
    if (row.is_flipped)
      places = _mm512_sub_epi8(_mm512_set1_epi8(static_cast<char>((n - 1) * row.n_channels)), forward);
    places = _mm512_add_epi8(places, _mm512_set1_epi8(static_cast<char>(channel)));
    const __m512i levels = gather(row.in + first * row.n_channels, n * row.n_channels, row.n_channels, places);
    if constexpr (element_bytes == 4)
      store_4(tables, levels, n, out + element_bytes * done);
    else
      store_2(tables, levels, n, out + element_bytes * done);
  }
}

}  // namespace

void convert_planar_vbmi(const PlanarRow& row, const std::uint8_t* planes, std::size_t element_bytes, std::byte* out,
                         std::size_t channel_stride) {
  for (std::size_t channel = 0; channel < least(row.n_channels, most_channels); ++channel) {
    const std::uint8_t* const mine = planes + channel * element_bytes * table_bytes;
    const auto at = out + channel * channel_stride * element_bytes;
    if (element_bytes == 4) {
      const Table tables[4] = {Table{mine}, Table{mine + table_bytes}, Table{mine + 2 * table_bytes},
                               Table{mine + 3 * table_bytes}};
      convert_channel<4>(row, channel, tables, at);
    } else {
      const Table tables[2] = {Table{mine}, Table{mine + table_bytes}};
      convert_channel<2>(row, channel, tables, at);
    }
  }
}

}  // namespace lockstep::data
