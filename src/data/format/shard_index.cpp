#include "data/format/shard_index.hpp"

#include <fmt/format.h>

#include <cstring>

#include "core/crc32c.hpp"
#include "data/format/damaged.hpp"
#include "data/format/little_endian.hpp"

namespace lockstep::data {
namespace {

constexpr std::string_view magic = "LOCKSHRD";
constexpr std::uint32_t index_version = 1;
constexpr std::size_t name_bytes = 16;
constexpr std::size_t header_bytes = 32;
constexpr std::size_t crc_bytes = sizeof(std::uint32_t);
constexpr std::uint64_t hdf5_chunk_limit = std::uint64_t{1} << 32;  // HDF5 allows only smaller chunks

void append_text(std::vector<std::byte>& bytes, std::string_view text, std::size_t width) {
  for (std::size_t i = 0; i < width; ++i)
    bytes.push_back(i < text.size() ? static_cast<std::byte>(text[i]) : std::byte{0});
}

void append_array(std::vector<std::byte>& bytes, const ArrayIndex& array) {
  append_text(bytes, array.name, name_bytes);
  append_little_endian(bytes, array.n_rows);
  append_little_endian(bytes, array.row_bytes);
  append_little_endian(bytes, array.chunk_rows);
  append_little_endian(bytes, array.element_bytes);
  append_little_endian(bytes, static_cast<std::uint32_t>(array.filter));
  append_little_endian(bytes, std::uint64_t{array.chunks.size()});
  append_little_endian(bytes, array.chunks.size() * array.crcs_per_chunk());
  for (const io::Extent& chunk : array.chunks) {
    append_little_endian(bytes, chunk.address);
    append_little_endian(bytes, chunk.bytes);
  }
  for (const std::vector<std::uint32_t>& crcs : array.crcs)
    for (const std::uint32_t crc : crcs) append_little_endian(bytes, crc);
}

/// Parses an index from front to back.
class Parser {
 public:
  Parser(std::span<const std::byte> bytes, std::uint64_t file_bytes, const std::string& where)
      : bytes_{bytes}, file_bytes_{file_bytes}, where_{where} {}

  ShardIndex parse() {
    check_frame();
    ShardIndex index;
    const auto n_arrays = take<std::uint32_t>();
    index.n_samples = take<std::uint64_t>();
    index.first_id = take<std::uint64_t>();
    check(n_arrays <= 4, "has too many arrays");
    for (std::uint32_t i = 0; i < n_arrays; ++i) index.arrays.push_back(parse_array());
    check(bytes_.empty(), "has bytes left over");
    check_arrays(index);
    return index;
  }

 private:
  void check(bool holds, std::string_view complaint) const {
    if (!holds) fail_damaged(fmt::format("index {}", complaint), where_);
  }

  template <class T>
  T take() {
    check(bytes_.size() >= sizeof(T), "ends too early");
    const T value = from_little_endian<T>(bytes_);
    bytes_ = bytes_.subspan(sizeof(T));
    return value;
  }

  // Checks magic, version and check sum; keeps the part between them.
  void check_frame() {
    check(bytes_.size() >= header_bytes + crc_bytes, "is too short");
    check(std::memcmp(bytes_.data(), magic.data(), magic.size()) == 0, "does not begin with its magic number");
    const auto stored = from_little_endian<std::uint32_t>(bytes_.last(crc_bytes));
    bytes_ = bytes_.first(bytes_.size() - crc_bytes);
    const std::uint32_t found = core::crc32c(bytes_);
    check(found == stored, fmt::format("is damaged: CRC32C expected {:#010x}, found {:#010x}", stored, found));
    bytes_ = bytes_.subspan(magic.size());
    const auto its_version = take<std::uint32_t>();
    check(its_version == index_version,
          fmt::format("has version {}, but this program reads version {}", its_version, index_version));
  }

  std::string take_name() {
    check(bytes_.size() >= name_bytes, "ends too early");
    std::string name(name_bytes, '\0');
    std::memcpy(name.data(), bytes_.data(), name_bytes);
    bytes_ = bytes_.subspan(name_bytes);
    const std::size_t length = std::min(name.find('\0'), name_bytes);
    check(length < name_bytes && name.find_first_not_of('\0', length) == std::string::npos, "has a malformed name");
    name.resize(length);
    return name;
  }

  ArrayIndex parse_array() {
    ArrayIndex array;
    array.name = take_name();
    array.n_rows = take<std::uint64_t>();
    array.row_bytes = take<std::uint64_t>();
    array.chunk_rows = take<std::uint64_t>();
    array.element_bytes = take<std::uint32_t>();
    const auto filter = take<std::uint32_t>();
    const auto n_chunks = take<std::uint64_t>();
    const auto n_crcs = take<std::uint64_t>();
    check(filter < io::all_filters.size(), "names an unknown filter");
    array.filter = io::all_filters[filter];
    check_shape(array, n_chunks);
    check(n_chunks <= bytes_.size() / sizeof(io::Extent), "ends within its chunks");
    check(n_crcs == n_chunks * array.crcs_per_chunk(), "has the wrong number of check sums");
    parse_chunks(array, n_chunks);
    check(n_crcs <= bytes_.size() / crc_bytes, "ends within its check sums");
    array.crcs.resize(n_chunks);
    for (auto& crcs : array.crcs) {
      crcs.resize(array.crcs_per_chunk());
      for (auto& crc : crcs) crc = take<std::uint32_t>();
    }
    return array;
  }

  void check_shape(const ArrayIndex& array, std::uint64_t n_chunks) const {
    check(array.row_bytes > 0 && array.row_bytes < hdf5_chunk_limit, "has rows of an impossible size");
    check(array.chunk_rows > 0 && array.chunk_rows < hdf5_chunk_limit && array.chunk_bytes() < hdf5_chunk_limit,
          "has chunks of an impossible size");
    check(array.element_bytes > 0 && array.row_bytes % array.element_bytes == 0, "has rows that end within an element");
    const std::uint64_t expected = array.n_rows / array.chunk_rows + (array.n_rows % array.chunk_rows != 0 ? 1 : 0);
    check(n_chunks == expected, "has chunks for a different number of rows");
  }

  void parse_chunks(ArrayIndex& array, std::uint64_t n_chunks) {
    array.chunks.resize(n_chunks);
    for (io::Extent& chunk : array.chunks) {
      chunk.address = take<std::uint64_t>();
      chunk.bytes = take<std::uint64_t>();
      check(chunk.bytes <= file_bytes_ && chunk.address <= file_bytes_ - chunk.bytes, "has a chunk outside the file");
      const bool is_plain = array.filter == io::Filter::none;
      check(is_plain ? chunk.bytes == array.chunk_bytes() : chunk.bytes > 0, "has a chunk of the wrong size");
    }
  }

  void check_array(const ShardIndex& index, std::string_view name, std::uint64_t n_rows) const {
    const ArrayIndex* array = index.find(name);
    check(array != nullptr && array->n_rows == n_rows, fmt::format("does not have {} rows of {}", n_rows, name));
  }

  void check_arrays(const ShardIndex& index) const {
    const bool is_encoded = index.find(x_offset_name) != nullptr;
    check(index.n_samples > 0 && index.n_samples < UINT64_MAX - index.first_id, "has an impossible number of samples");
    check(index.arrays.size() == (is_encoded ? 4U : 3U), "lacks an array, or has one twice");
    check(index.find(x_name) != nullptr, "has no x");
    check_array(index, y_name, index.n_samples);
    check_array(index, id_name, index.n_samples);
    check(index.find(id_name)->row_bytes == sizeof(std::uint64_t), "has ids that are not uint64");
    if (!is_encoded) return check_array(index, x_name, index.n_samples);
    check_array(index, x_offset_name, index.n_samples + 1);
    check(index.find(x_offset_name)->row_bytes == sizeof(std::uint64_t), "has offsets that are not uint64");
    check(index.find(x_name)->row_bytes == 1, "has an encoded x that is not made of bytes");
  }

  std::span<const std::byte> bytes_;
  std::uint64_t file_bytes_;
  const std::string& where_;
};

}  // namespace

const ArrayIndex* ShardIndex::find(std::string_view name) const noexcept {
  const auto array = std::find_if(arrays.begin(), arrays.end(), [&](const ArrayIndex& a) { return a.name == name; });
  return array == arrays.end() ? nullptr : &*array;
}

std::vector<std::byte> serialize(const ShardIndex& index) {
  std::vector<std::byte> bytes;
  append_text(bytes, magic, magic.size());
  append_little_endian(bytes, index_version);
  append_little_endian(bytes, static_cast<std::uint32_t>(index.arrays.size()));
  append_little_endian(bytes, index.n_samples);
  append_little_endian(bytes, index.first_id);
  for (const ArrayIndex& array : index.arrays) append_array(bytes, array);
  append_little_endian(bytes, core::crc32c(bytes));
  return bytes;
}

ShardIndex parse_shard_index(std::span<const std::byte> bytes, std::uint64_t file_bytes, const std::string& where) {
  return Parser{bytes, file_bytes, where}.parse();
}

}  // namespace lockstep::data
