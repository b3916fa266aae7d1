#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "core/error.hpp"
#include "runtime/kernel/launch.hpp"
#include "runtime/kernel/pattern.hpp"

namespace lockstep::runtime::kernel {
namespace {

using Words = Pack<std::uint64_t>;
static_assert(sizeof(Words) == bytes_of_pack);

constexpr std::uint64_t no_byte = std::numeric_limits<std::uint64_t>::max();

std::size_t lead_of(const void* where) { return reinterpret_cast<std::uintptr_t>(where) % bytes_of_pack; }

/// Bytes in packs: the first pack begins `lead` bytes before them, the last may end after them.
template <class Byte>
struct Place {
  Byte* bytes;
  std::size_t n_bytes;
  std::uint32_t lead;

  [[nodiscard]] LOCKSTEP_HOST_DEVICE std::size_t n_packs() const {
    return (lead + n_bytes + bytes_of_pack - 1) / bytes_of_pack;
  }
  [[nodiscard]] LOCKSTEP_HOST_DEVICE bool has_all_of(std::size_t pack) const {
    return bytes_of_pack * pack >= lead && bytes_of_pack * (pack + 1) <= lead + n_bytes;
  }
  /// The words of a pack whose bytes are all here.
  template <class Word>
  [[nodiscard]] LOCKSTEP_HOST_DEVICE Word* words(std::size_t pack) const {
    return reinterpret_cast<Word*>(bytes + (bytes_of_pack * pack - lead));
  }
  /// f(byte, position in the pack) for those bytes of the pack that are here.
  template <class F>
  LOCKSTEP_HOST_DEVICE void each_byte(std::size_t pack, const F& f) const {
    for (int i = 0; i < static_cast<int>(bytes_of_pack); ++i) {
      const std::size_t at = bytes_of_pack * pack + static_cast<std::size_t>(i);
      if (at >= lead && at < lead + n_bytes) f(bytes[at - lead], i);
    }
  }
};

template <class Byte>
Place<Byte> place_of(DeviceSpan<Byte> span) {
  return {span.data(), span.size(), static_cast<std::uint32_t>(lead_of(span.data()))};
}

/// A tile of whole packs.
struct Tile {
  const std::uint64_t* words;
  std::uint32_t n_packs;

  /// f(pack, the tile's words for it) for this thread's share of packs.
  template <class Team, class F>
  LOCKSTEP_HOST_DEVICE void each_pack(const Team& team, int thread, std::size_t n, const F& f) const {
    const auto n_threads = static_cast<std::size_t>(team.n_threads());
    const std::size_t stride = team.n_blocks() * n_threads;
    const auto step = static_cast<std::uint32_t>(stride % n_packs);
    std::size_t i = team.block() * n_threads + static_cast<std::size_t>(thread);
    for (auto j = static_cast<std::uint32_t>(i % n_packs); i < n; i += stride) {
      f(i, load<std::uint64_t>(words, j));
      j += step;
      if (j >= n_packs) j -= n_packs;
    }
  }
};

Tile tile_of(DeviceSpan<const std::byte> packed) {
  core::require(packed.size() > 0 && packed.size() % bytes_of_pack == 0 && lead_of(packed.data()) == 0,
                "a tile consists of whole packs");
  return {reinterpret_cast<const std::uint64_t*>(packed.data()),
          static_cast<std::uint32_t>(packed.size() / bytes_of_pack)};
}

LOCKSTEP_HOST_DEVICE inline std::uint64_t bits_of(std::byte value) { return static_cast<std::uint64_t>(value); }

LOCKSTEP_HOST_DEVICE inline std::byte byte_of(const Words& words, int i) {
  return static_cast<std::byte>((i < 8 ? words[0] : words[1]) >> (8 * (i % 8)));
}

LOCKSTEP_HOST_DEVICE inline void write(const Place<std::byte>& to, std::size_t pack, const Words& words) {
  if (to.has_all_of(pack))
    store(to.words<std::uint64_t>(pack), 0, words);
  else
    to.each_byte(pack, [&](std::byte& byte, int i) { byte = byte_of(words, i); });
}

struct Repeat {
  static constexpr int max_threads = 256;
  Tile tile;
  Place<std::byte> to;

  template <class Team>
  LOCKSTEP_HOST_DEVICE void operator()(Team& team) const {
    team.each([&](int thread) {
      tile.each_pack(team, thread, to.n_packs(), [&](std::size_t i, const Words& words) { write(to, i, words); });
    });
  }
};

struct RepeatOne {
  Words words;
  Place<std::byte> to;

  LOCKSTEP_HOST_DEVICE void operator()(std::size_t i) const { write(to, i, words); }
};

/// The bits in which a pack differs from the expected one; none for packs outside the memory.
LOCKSTEP_HOST_DEVICE inline Words difference(const Place<const std::byte>& found, std::size_t pack, Words expected) {
  if (found.has_all_of(pack)) {
    const auto words = load_once<std::uint64_t>(found.words<const std::uint64_t>(pack), 0);
    return {words[0] ^ expected[0], words[1] ^ expected[1]};
  }
  std::uint64_t low = 0, high = 0;
  found.each_byte(pack, [&](const std::byte& byte, int i) {
    const std::uint64_t bits = bits_of(byte ^ byte_of(expected, i)) << (8 * (i % 8));
    (i < 8 ? low : high) |= bits;
  });
  return {low, high};
}

struct Compare {
  static constexpr int max_threads = 256;
  Tile tile;
  Place<const std::byte> found;
  int element_bits;
  PartialDifference* partials;

  template <class Team>
  LOCKSTEP_HOST_DEVICE void operator()(Team& team) const {
    auto n_wrong = team.per_thread(std::uint64_t{0});
    auto first = team.per_thread(no_byte);
    team.each([&](int thread) {
      tile.each_pack(team, thread, found.n_packs(), [&](std::size_t i, const Words& expected) {
        const Words bits = difference(found, i, expected);
        const auto count = [&](std::uint64_t word, std::size_t at) {
          for (int shift = 0; shift < 64; shift += element_bits) {
            if ((word >> shift & (~std::uint64_t{0} >> (64 - element_bits))) == 0) continue;
            if (n_wrong[thread]++ == 0) first[thread] = at + static_cast<std::size_t>(shift / 8);
          }
        };
        if ((bits[0] | bits[1]) == 0) return;
        count(bits[0], bytes_of_pack * i - found.lead);
        count(bits[1], bytes_of_pack * i + 8 - found.lead);
      });
    });
    const std::uint64_t n = team.sum(n_wrong);
    const std::uint64_t least = team.reduce(first, [](std::uint64_t a, std::uint64_t b) { return a < b ? a : b; });
    team.each([&](int thread) {
      if (thread == 0) partials[team.block()] = {n, least};
    });
  }
};

/// One block.
struct Conclude {
  static constexpr int max_threads = 256;
  Tile tile;
  Place<const std::byte> found;
  int element_size;
  const PartialDifference* partials;
  std::uint32_t n_partials;
  Difference* result;

  template <class Team>
  LOCKSTEP_HOST_DEVICE void operator()(Team& team) const {
    auto n_wrong = team.per_thread(std::uint64_t{0});
    auto first = team.per_thread(no_byte);
    team.each([&](int thread) {
      for (auto i = static_cast<std::uint32_t>(thread); i < n_partials;
           i += static_cast<std::uint32_t>(team.n_threads())) {
        n_wrong[thread] += partials[i].n_wrong;
        if (partials[i].first < first[thread]) first[thread] = partials[i].first;
      }
    });
    const std::uint64_t n = team.sum(n_wrong);
    const std::uint64_t least = team.reduce(first, [](std::uint64_t a, std::uint64_t b) { return a < b ? a : b; });
    team.each([&](int thread) {
      if (thread == 0) *result = n == 0 ? Difference{} : describe(n, least);
    });
  }

 private:
  [[nodiscard]] LOCKSTEP_HOST_DEVICE Difference describe(std::uint64_t n, std::uint64_t first) const {
    Difference difference{n, first / static_cast<std::uint64_t>(element_size), 0, 0};
    const auto* const expected = reinterpret_cast<const std::byte*>(tile.words);
    for (int i = 0; i < element_size; ++i) {
      const std::uint64_t at = first + static_cast<std::uint64_t>(i);
      difference.expected |= bits_of(expected[(found.lead + at) % (bytes_of_pack * tile.n_packs)]) << (8 * i);
      difference.found |= bits_of(found.bytes[at]) << (8 * i);
    }
    return difference;
  }
};

struct FlipBit {
  std::byte* byte;

  LOCKSTEP_HOST_DEVICE void operator()(std::size_t) const { *byte ^= std::byte{1}; }
};

template <class T>
Region region_of(DeviceSpan<T> span) {
  return region(span.data(), span.size());
}

std::size_t round_up_to_pack(std::size_t n_bytes) {
  return (n_bytes + bytes_of_pack - 1) / bytes_of_pack * bytes_of_pack;
}

void expect_elements(const Comparison& of) {
  const std::size_t size = of.element_size;
  core::require((size == 1 || size == 2 || size == 4 || size == 8) && of.found.size() % size == 0 &&
                    lead_of(of.found.data()) % size == 0,
                "elements have 1, 2, 4 or 8 bytes and are aligned to their size");
  core::require(of.partials.size() == n_partial_differences(of.found.size()), "there is a number for every block");
}

}  // namespace

std::size_t packed_bytes(std::size_t tile_bytes, std::size_t n_bytes) noexcept {
  return std::min(std::lcm(tile_bytes, bytes_of_pack), round_up_to_pack(n_bytes + bytes_of_pack - 1));
}

void pack(std::span<const std::byte> tile, const void* where, std::span<std::byte> packed) {
  const std::size_t first = std::min(lead_of(where), packed.size());
  // Begins with the end of the previous tile, because the packs are repeated too.
  for (std::size_t i = 0; i < first; ++i) packed[i] = tile[(tile.size() - first % tile.size() + i) % tile.size()];
  for (std::size_t at = first; at < packed.size(); at += tile.size()) {
    const std::size_t n = std::min(tile.size(), packed.size() - at);
    std::memcpy(packed.data() + at, tile.data(), n);
  }
}

void repeat(Stream& stream, DeviceSpan<const std::byte> packed, DeviceSpan<std::byte> to) {
  if (to.size() == 0) return;
  const Repeat body{tile_of(packed), place_of(to)};
  enqueue(stream, "repeat", grid_of(body.to.n_packs()), {region_of(packed)}, {region_of(to)}, body);
}

void repeat(Stream& stream, const std::array<std::byte, bytes_of_pack>& pack, DeviceSpan<std::byte> to) {
  if (to.size() == 0) return;
  const RepeatOne body{std::bit_cast<Words>(pack), place_of(to)};
  for_each(stream, "repeat_one", body.to.n_packs(), {}, {region_of(to)}, body);
}

std::size_t n_partial_differences(std::size_t n_bytes) noexcept {
  return grid_of((n_bytes + 2 * (bytes_of_pack - 1)) / bytes_of_pack).n_blocks;
}

void compare(Stream& stream, const Comparison& of) {
  expect_elements(of);
  if (of.found.size() == 0) return;
  enqueue(stream, "compare", {.n_blocks = static_cast<unsigned>(of.partials.size())},
          {region_of(of.packed), region_of(of.found)}, {region_of(of.partials)},
          Compare{tile_of(of.packed), place_of(of.found), static_cast<int>(8 * of.element_size), of.partials.data()});
}

void conclude(Stream& stream, const Comparison& of, DeviceSpan<Difference> result) {
  expect_elements(of);
  if (of.found.size() == 0) return;
  enqueue(stream, "conclude", {},
          {region_of(DeviceSpan<const PartialDifference>{of.partials}), region_of(of.packed), region_of(of.found)},
          {region_of(result)},
          Conclude{tile_of(of.packed), place_of(of.found), static_cast<int>(of.element_size), of.partials.data(),
                   static_cast<std::uint32_t>(of.partials.size()), result.data()});
}

void flip_bit(Stream& stream, DeviceSpan<std::byte> of, std::size_t at) {
  const DeviceSpan<std::byte> one = of.subspan(at, 1);
  for_each(stream, "flip_bit", 1, {region_of(one)}, {region_of(one)}, FlipBit{one.data()});
}

}  // namespace lockstep::runtime::kernel
