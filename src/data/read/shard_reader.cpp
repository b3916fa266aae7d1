#include "data/read/shard_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "core/crc32c.hpp"
#include "data/format/damaged.hpp"
#include "data/format/little_endian.hpp"
#include "io/codec.hpp"

namespace lockstep::data {
namespace {

// Up to this size, one read into scratch memory is cheaper than separate reads of the ends and the middle of a range.
constexpr std::uint64_t largest_detour = 4 * crc_block_bytes;

// This many bytes are read and then checked while they are still in the processor's own cache.
constexpr std::uint64_t checked_together = 4 * crc_block_bytes;

/// This thread's memory for bytes that are not delivered directly. Kept, because otherwise every read would allocate
/// it.
std::span<std::byte> scratch(std::vector<std::byte>& kept, std::uint64_t bytes) {
  if (kept.size() < bytes) kept.resize(bytes);
  return std::span{kept}.first(bytes);
}
thread_local std::vector<std::byte> stored_scratch;
thread_local std::vector<std::byte> decoded_scratch;

struct Mismatch {
  std::uint64_t part = 0;  ///< index among the given check sums
  std::uint32_t expected = 0;
  std::uint32_t found = 0;
};

// Starts at check sum `part` of `crcs`; `stored` begins with the block or chunk of the first of them.
std::optional<Mismatch> find_mismatch(const ArrayIndex& array, std::span<const std::uint32_t> crcs,
                                      std::span<const std::byte> stored, std::uint64_t part = 0) {
  const std::uint64_t step = array.filter == io::Filter::none ? crc_block_bytes : stored.size();
  for (; part * step < stored.size(); ++part) {
    const auto rest = stored.subspan(part * step);
    const std::uint32_t found = core::crc32c(rest.first(std::min<std::uint64_t>(step, rest.size())));
    if (found != crcs[part]) return Mismatch{part, crcs[part], found};
  }
  return std::nullopt;
}

std::string describe(const Mismatch& mismatch) {
  return fmt::format("CRC32C expected {:#010x}, found {:#010x}", mismatch.expected, mismatch.found);
}

/// The rows of a chunk that a check sum covers, counted from its begin; for padding, the last row before it.
struct Rows {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};

Rows rows_of_part(const ArrayIndex& array, std::uint64_t chunk, std::uint64_t part) {
  const std::uint64_t last = array.rows_in(chunk) - 1;
  if (array.filter != io::Filter::none) return {0, last};
  const std::uint64_t begin = part * crc_block_bytes, end = std::min(begin + crc_block_bytes, array.chunk_bytes());
  return {std::min(begin / array.row_bytes, last), std::min((end - 1) / array.row_bytes, last)};
}

// Whether it ends where its HDF5 superblock (version 2 or 3) says.
bool is_whole_hdf5(const io::File& file) {
  constexpr std::string_view start{"\x89HDF\r\n\x1a\n"};
  constexpr std::size_t version_at = 8, offset_bytes_at = 9, end_at = 28;
  std::array<std::byte, end_at + sizeof(std::uint64_t)> head{};
  if (file.size().value < head.size()) return false;
  file.read_at(0, head);
  const auto version = std::to_integer<int>(head[version_at]);
  return std::memcmp(head.data(), start.data(), start.size()) == 0 && (version == 2 || version == 3) &&
         std::to_integer<int>(head[offset_bytes_at]) == 8 &&
         from_little_endian<std::uint64_t>(std::span{head}.subspan(end_at)) == file.size().value;
}

void check_size(const io::File& file, const ShardEntry& entry) {
  if (const auto complaint = examine_size(file, entry.bytes)) fail_damaged(*complaint, file.path());
}

ShardIndex read_index(const io::File& file, const ShardEntry& entry) {
  check_size(file, entry);
  std::vector<std::byte> bytes(entry.index.bytes);
  file.read_at(entry.index.address, bytes);
  ShardIndex index = parse_shard_index(bytes, entry.bytes, file.path());
  const auto crc = from_little_endian<std::uint32_t>(std::span{bytes}.last(sizeof(std::uint32_t)));
  if (crc != entry.index_crc)
    fail_damaged(fmt::format("a shard of another set: CRC32C of its index expected {:#010x}, found {:#010x}",
                             entry.index_crc, crc),
                 file.path());
  return index;
}

bool is_of(const ArrayIndex& array, const ArraySpec& spec) {
  return array.row_bytes == spec.bytes() && array.element_bytes == core::size_of(spec.dtype);
}

void check_spec(const ShardIndex& index, const ShardEntry& entry, const SetSpec& spec, const std::string& path) {
  const bool is_encoded = index.find(x_offset_name) != nullptr;
  const bool has_spec = is_encoded == spec.is_encoded() && (is_encoded || is_of(*index.find(x_name), spec.x)) &&
                        is_of(*index.find(y_name), spec.y);
  if (!has_spec) fail_damaged("x or y differs in type or shape from the manifest", path);
  if (index.n_samples != entry.n_samples)
    fail_damaged(fmt::format("{} samples, expected {}", index.n_samples, entry.n_samples), path);
}

}  // namespace

std::optional<std::string> examine_size(const io::File& file, std::uint64_t expected) {
  const std::uint64_t bytes = file.size().value;
  if (bytes == expected) return std::nullopt;
  const char* const reason = is_whole_hdf5(file) ? "a file of another set"
                             : bytes < expected  ? "truncated"
                                                 : "too long";
  return fmt::format("{} bytes long, expected {}: {}", bytes, expected, reason);
}

ShardReader::ShardReader(const std::string& folder, const ShardEntry& entry, const SetSpec& spec,
                         ReadCounters& counters)
    : file_{fmt::format("{}/{}", folder, entry.file)}, index_{read_index(file_, entry)}, counters_{counters} {
  check_spec(index_, entry, spec, file_.path());
}

void ShardReader::read_chunk(const ArrayIndex& array, std::uint64_t chunk, std::span<std::byte> out) const {
  core::require(chunk < array.chunks.size(), "the chunk to read belongs to the array");
  read_rows(array, chunk * array.chunk_rows, array.rows_in(chunk), out);
}

void ShardReader::read_rows(const ArrayIndex& array, std::uint64_t first, std::uint64_t n,
                            std::span<std::byte> out) const {
  core::require(first <= array.n_rows && n <= array.n_rows - first, "the rows to read belong to the array");
  core::require(out.size() == n * array.row_bytes, "the output has the size of the rows");
  while (n > 0) {
    const std::uint64_t chunk = first / array.chunk_rows;
    const std::uint64_t row = first % array.chunk_rows;
    const std::uint64_t n_here = std::min(n, array.chunk_rows - row);
    const auto part = out.first(n_here * array.row_bytes);
    if (array.filter == io::Filter::none)
      read_plain(array, chunk, row * array.row_bytes, part);
    else
      read_compressed(array, chunk, row, part);
    out = out.subspan(part.size());
    first += n_here;
    n -= n_here;
  }
}

void ShardReader::read_plain(const ArrayIndex& array, std::uint64_t chunk, std::uint64_t begin,
                             std::span<std::byte> out) const {
  if (out.empty()) return;
  const std::uint64_t end = begin + out.size();
  const std::uint64_t low = begin / crc_block_bytes * crc_block_bytes;
  const std::uint64_t high =
      std::min((end + crc_block_bytes - 1) / crc_block_bytes * crc_block_bytes, array.chunk_bytes());
  if (low == begin && high == end) return read_blocks(array, chunk, begin, out);
  if (high - low <= largest_detour) {
    const auto blocks = scratch(stored_scratch, high - low);
    read_blocks(array, chunk, low, blocks);
    std::memcpy(out.data(), blocks.data() + (begin - low), out.size());
    return;
  }
  // Whole blocks in the middle are read in place; only the ends are read via scratch memory.
  const std::uint64_t head = low == begin ? 0 : low + crc_block_bytes - begin;
  const std::uint64_t tail = high == end ? 0 : end % crc_block_bytes;
  const std::uint64_t middle = out.size() - head - tail;
  read_plain(array, chunk, begin, out.first(head));
  read_blocks(array, chunk, begin + head, out.subspan(head, middle));
  read_plain(array, chunk, end - tail, out.last(tail));
}

void ShardReader::read_blocks(const ArrayIndex& array, std::uint64_t chunk, std::uint64_t begin,
                              std::span<std::byte> out) const {
  // A compressed chunk has only one check sum.
  const std::uint64_t piece_bytes = array.filter == io::Filter::none ? checked_together : out.size();
  for (std::uint64_t at = 0; at < out.size(); at += piece_bytes) {
    const auto piece = out.subspan(at, std::min(piece_bytes, out.size() - at));
    read_stored(array.chunks[chunk].address + begin + at, piece);
    check(array, chunk, (begin + at) / crc_block_bytes, piece);
  }
}

void ShardReader::read_stored(std::uint64_t address, std::span<std::byte> out) const {
  read_whole(file_.path(), [&] { file_.read_at(address, out); });
}

void ShardReader::read_compressed(const ArrayIndex& array, std::uint64_t chunk, std::uint64_t first,
                                  std::span<std::byte> out) const {
  const auto stored = scratch(stored_scratch, array.chunks[chunk].bytes);
  read_blocks(array, chunk, 0, stored);
  const bool is_whole = out.size() == array.chunk_bytes();
  const auto decoded = is_whole ? out : scratch(decoded_scratch, array.chunk_bytes());
  if (!io::decode(array.filter, array.element_bytes, stored, decoded))
    fail_damaged(fmt::format("{}: cannot be decoded as {}", place(array, chunk, 0, array.rows_in(chunk) - 1),
                             io::name(array.filter)),
                 file_.path());
  if (!is_whole) std::memcpy(out.data(), decoded.data() + first * array.row_bytes, out.size());
}

void ShardReader::check(const ArrayIndex& array, std::uint64_t chunk, std::uint64_t first_crc,
                        std::span<const std::byte> stored) const {
  counters_.n_chunks.fetch_add(1, std::memory_order_relaxed);
  counters_.bytes.fetch_add(stored.size(), std::memory_order_relaxed);
  const auto mismatch = find_mismatch(array, std::span{array.crcs[chunk]}.subspan(first_crc), stored);
  if (!mismatch) return;
  counters_.n_crc_failures.fetch_add(1, std::memory_order_relaxed);
  const Rows rows = rows_of_part(array, chunk, first_crc + mismatch->part);
  fail_damaged(fmt::format("{}: {}", place(array, chunk, rows.first, rows.last), describe(*mismatch)), file_.path());
}

std::optional<std::string> ShardReader::examine_chunk(const ArrayIndex& array, std::uint64_t chunk) const {
  const auto stored = scratch(stored_scratch, array.chunks[chunk].bytes);
  read_stored(array.chunks[chunk].address, stored);
  const std::span crcs{array.crcs[chunk]};
  const auto mismatch = find_mismatch(array, crcs, stored);
  if (!mismatch) return std::nullopt;
  std::uint64_t n_more = 0, last = mismatch->part;
  while (const auto next = find_mismatch(array, crcs, stored, last + 1)) last = next->part, ++n_more;
  const std::uint64_t first_row = rows_of_part(array, chunk, mismatch->part).first;
  const std::uint64_t last_row = rows_of_part(array, chunk, last).last;
  return fmt::format("{}: {}{}", place(array, chunk, first_row, last_row), describe(*mismatch),
                     n_more > 0 ? fmt::format(", and {} more blocks are damaged", n_more) : "");
}

std::string ShardReader::place(const ArrayIndex& array, std::uint64_t chunk, std::uint64_t first_row,
                               std::uint64_t last_row) const {
  const std::uint64_t first = chunk * array.chunk_rows + first_row, last = chunk * array.chunk_rows + last_row;
  const bool is_bytes = array.name == x_name && index_.find(x_offset_name) != nullptr;
  const std::string samples =
      is_bytes ? samples_of_bytes(first, last)
               : fmt::format("samples {} to {}", index_.first_id + std::min(first, index_.n_samples - 1),
                             index_.first_id + std::min(last, index_.n_samples - 1));
  return fmt::format("{}, chunk {} ({})", array.name, chunk, samples);
}

// Reads at a time only the two offsets that enclose a sample, because memory may be short here.
std::string ShardReader::samples_of_bytes(std::uint64_t begin, std::uint64_t end) const try {
  const ArrayIndex& offsets = *index_.find(x_offset_name);
  const auto sample_at = [&](std::uint64_t byte) {
    std::uint64_t low = 0, high = index_.n_samples;
    while (high - low > 1) {
      const std::uint64_t middle = low + (high - low) / 2;
      std::array<std::byte, sizeof(std::uint64_t)> bytes{};
      read_rows(offsets, middle, 1, bytes);
      (from_little_endian<std::uint64_t>(bytes) <= byte ? low : high) = middle;
    }
    return index_.first_id + low;
  };
  return fmt::format("samples {} to {}", sample_at(begin), sample_at(end));
} catch (const core::Error&) {
  return fmt::format("bytes {} to {}", begin, end);
}

}  // namespace lockstep::data
