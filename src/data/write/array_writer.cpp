#include "data/write/array_writer.hpp"

#include <algorithm>

#include "core/crc32c.hpp"
#include "core/error.hpp"
#include "io/codec.hpp"

namespace lockstep::data {
namespace {

ArrayIndex make_index(std::string_view name, const ArraySpec& row, std::uint64_t n_rows, std::uint64_t chunk_rows,
                      io::Filter filter) {
  return {.name = std::string{name},
          .n_rows = n_rows,
          .row_bytes = row.bytes(),
          .chunk_rows = std::clamp<std::uint64_t>(chunk_rows, 1, std::max<std::uint64_t>(n_rows, 1)),
          .element_bytes = static_cast<std::uint32_t>(core::size_of(row.dtype)),
          .filter = filter};
}

// An array without rows has no chunks: HDF5 stores it as contiguous.
io::Hdf5Dataset create(io::Hdf5File& file, const ArrayIndex& index, const ArraySpec& row) {
  io::Dimensions dimensions{index.n_rows};
  dimensions.insert(dimensions.end(), row.shape.begin(), row.shape.end());
  const bool is_empty = index.n_rows == 0;
  return file.create_dataset(index.name, row.dtype, dimensions, is_empty ? 0 : index.chunk_rows,
                             is_empty ? io::Filter::none : index.filter);
}

}  // namespace

ArrayWriter::ArrayWriter(io::Hdf5File& file, std::string_view name, const ArraySpec& row, std::uint64_t n_rows,
                         std::uint64_t chunk_rows, io::Filter filter, int level)
    : index_{make_index(name, row, n_rows, chunk_rows, filter)}, level_{level}, dataset_{create(file, index_, row)} {}

void ArrayWriter::append(std::span<const std::byte> rows) {
  n_appended_ += rows.size() / index_.row_bytes;
  core::require(rows.size() % index_.row_bytes == 0 && n_appended_ <= index_.n_rows,
                "rows of an array are the expected ones");
  while (!rows.empty()) {
    const std::size_t chunk_bytes = index_.chunk_bytes();
    if (pending_.empty() && rows.size() >= chunk_bytes) {
      write(rows.first(chunk_bytes));
      rows = rows.subspan(chunk_bytes);
      continue;
    }
    const auto part = rows.first(std::min(rows.size(), chunk_bytes - pending_.size()));
    pending_.reserve(chunk_bytes);
    pending_.insert(pending_.end(), part.begin(), part.end());
    rows = rows.subspan(part.size());
    if (pending_.size() < chunk_bytes) continue;
    write(pending_);
    pending_.clear();
  }
}

void ArrayWriter::write(std::span<const std::byte> chunk) {
  std::vector<std::uint32_t>& crcs = index_.crcs.emplace_back();
  if (index_.filter != io::Filter::none) {
    const auto stored = io::encode(index_.filter, level_, index_.element_bytes, chunk);
    crcs.push_back(core::crc32c(stored));
    return dataset_.write_chunk(index_.crcs.size() - 1, stored);
  }
  for (std::size_t at = 0; at < chunk.size(); at += crc_block_bytes)
    crcs.push_back(core::crc32c(chunk.subspan(at, std::min<std::size_t>(crc_block_bytes, chunk.size() - at))));
  dataset_.write_chunk(index_.crcs.size() - 1, chunk);
}

ArrayIndex ArrayWriter::finish() {
  core::require(n_appended_ == index_.n_rows, "an array has all its expected rows");
  if (!pending_.empty()) {
    pending_.resize(index_.chunk_bytes());
    write(pending_);
    pending_ = {};
  }
  if (index_.n_rows > 0) index_.chunks = dataset_.extents();
  return std::move(index_);
}

}  // namespace lockstep::data
