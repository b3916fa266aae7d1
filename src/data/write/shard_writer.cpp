#include "data/write/shard_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/pending.hpp"
#include "data/format/little_endian.hpp"
#include "data/write/array_writer.hpp"
#include "data/write/spool.hpp"
#include "io/digest.hpp"

namespace lockstep::data {
namespace {

constexpr std::uint64_t shard_version = 1;
// The disk begins with what is there while more is made, so that little is left to wait for at the end.
constexpr std::uint64_t sync_bytes = std::uint64_t{32} << 20;
const ArraySpec uint64_spec{.dtype = core::DType::uint64};
const ArraySpec byte_spec{.dtype = core::DType::uint8};

io::Hdf5File create_file(const std::string& path, const ShardPlace& place) {
  std::filesystem::remove(path);  // of an earlier attempt
  io::Hdf5File file = io::Hdf5File::create(path);
  file.set_attribute("lockstep_format", "shard");
  file.set_attribute("lockstep_version", shard_version);
  file.set_attribute("split", place.split);
  file.set_attribute("shard", place.number);
  return file;
}

}  // namespace

struct ShardWriter::State {
  State(const std::string& folder, const ShardPlace& the_place, const SetSpec& spec, const ShardLayout& the_layout)
      : path{fmt::format("{}/{}", folder, the_place.file_name())},
        place{the_place},
        layout{the_layout},
        chunk_rows{spec.is_encoded() ? the_place.n_samples : the_layout.chunk_samples},
        file{create_file(path, the_place)} {
    if (spec.is_encoded())
      encoded.emplace(folder);
    else
      x.emplace(make_array(x_name, spec.x, place.n_samples, chunk_rows));
    y.emplace(make_array(y_name, spec.y, place.n_samples, chunk_rows));
  }

  ArrayWriter make_array(std::string_view name, const ArraySpec& row, std::uint64_t n_rows,
                         std::uint64_t n_chunk_rows) {
    return ArrayWriter{file, name, row, n_rows, n_chunk_rows, layout.filter, layout.level};
  }

  ArrayIndex write_numbers(std::string_view name, std::span<const std::uint64_t> numbers);
  ArrayIndex write_ids();
  ArrayIndex write_encoded();
  io::Extent write_index(std::span<const std::byte> bytes);

  std::string path;
  ShardPlace place;
  ShardLayout layout;
  std::uint64_t chunk_rows;
  io::Hdf5File file;
  std::optional<ArrayWriter> x;
  std::optional<ArrayWriter> y;
  std::optional<SpoolWriter> encoded;
  std::vector<std::uint64_t> offsets{0};  ///< of encoded samples
  std::uint64_t n_unsynced = 0;           ///< bytes since begin_sync()
};

ArrayIndex ShardWriter::State::write_numbers(std::string_view name, std::span<const std::uint64_t> numbers) {
  ArrayWriter array = make_array(name, uint64_spec, numbers.size(), numbers.size());
  std::vector<std::byte> bytes;
  bytes.reserve(numbers.size_bytes());
  for (const std::uint64_t number : numbers) append_little_endian(bytes, number);
  array.append(bytes);
  return array.finish();
}

ArrayIndex ShardWriter::State::write_ids() {
  ArrayWriter array = make_array(id_name, uint64_spec, place.n_samples, chunk_rows);
  std::vector<std::byte> bytes;
  for (std::uint64_t i = 0; i < place.n_samples; ++i) {
    append_little_endian(bytes, place.first_id + i);
    if ((i + 1) % chunk_rows != 0 && i + 1 != place.n_samples) continue;
    array.append(bytes);
    bytes.clear();
  }
  return array.finish();
}

ArrayIndex ShardWriter::State::write_encoded() {
  const Spool spool = std::move(*encoded).finish();
  ArrayWriter array = make_array(x_name, byte_spec, spool.size(), layout.encoded_chunk_bytes);
  std::vector<std::byte> bytes;
  for (std::uint64_t at = 0; at < spool.size(); at += bytes.size()) {
    bytes.resize(std::min(spool.size() - at, layout.encoded_chunk_bytes));
    spool.read_at(at, bytes);
    array.append(bytes);
  }
  return array.finish();
}

io::Extent ShardWriter::State::write_index(std::span<const std::byte> bytes) {
  io::Hdf5Dataset dataset = file.create_dataset("index", core::DType::uint8, {bytes.size()}, 0, io::Filter::none);
  dataset.write_all(bytes);
  return dataset.extents().at(0);
}

ShardWriter::ShardWriter(const std::string& folder, const ShardPlace& place, const SetSpec& spec,
                         const ShardLayout& layout)
    : state_{std::make_unique<State>(folder, place, spec, layout)} {
  core::require(place.n_samples > 0, "a shard has samples");
}

ShardWriter::~ShardWriter() = default;

void ShardWriter::append(std::span<const std::byte> x, std::span<const std::byte> y) {
  core::require(state_->x.has_value(), "samples of an encoded set are appended one by one");
  state_->x->append(x);
  state_->y->append(y);
  state_->n_unsynced += x.size() + y.size();
  if (state_->n_unsynced < sync_bytes) return;
  core::begin_sync(state_->path);
  state_->n_unsynced = 0;
}

void ShardWriter::append_encoded(std::span<const std::byte> image, std::span<const std::byte> y) {
  core::require(state_->encoded.has_value(), "encoded samples belong in an encoded set");
  state_->encoded->append(image);
  state_->offsets.push_back(state_->offsets.back() + image.size());
  state_->y->append(y);
}

ShardEntry ShardWriter::finish() {
  State& s = *state_;
  ShardIndex index{.n_samples = s.place.n_samples, .first_id = s.place.first_id};
  index.arrays.push_back(s.encoded ? s.write_encoded() : s.x->finish());
  index.arrays.push_back(s.y->finish());
  index.arrays.push_back(s.write_ids());
  if (s.encoded) index.arrays.push_back(s.write_numbers(x_offset_name, s.offsets));
  const std::vector<std::byte> bytes = serialize(index);
  const io::Extent extent = s.write_index(bytes);
  s.x.reset();
  s.y.reset();
  s.encoded.reset();
  s.file.close();
  core::begin_sync(s.path);
  std::string digest = io::digest_of_file(s.path);
  core::sync_to_disk(s.path);
  return {.file = s.place.file_name(),
          .n_samples = s.place.n_samples,
          .bytes = std::filesystem::file_size(s.path),
          .digest = std::move(digest),
          .index = extent,
          .index_crc = from_little_endian<std::uint32_t>(std::span{bytes}.last(sizeof(std::uint32_t)))};
}

}  // namespace lockstep::data
