#include "data/read/block.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "core/error.hpp"
#include "data/format/damaged.hpp"
#include "data/format/little_endian.hpp"

namespace lockstep::data {
namespace {

// The bytes that a block of image files should have; the chunks of raw samples have as many by default.
constexpr std::uint64_t encoded_block_bytes = std::uint64_t{4} << 20;

/// The samples of a block: a function of the whole set's manifest, so it never depends on what a rank has read.
std::uint64_t block_samples(const Manifest& manifest) noexcept {
  if (manifest.chunk_samples > 0) return manifest.chunk_samples;
  std::uint64_t bytes = 0, n_samples = 0;
  for (const Split& split : manifest.splits) bytes += split.stored_bytes().value, n_samples += split.n_samples;
  const std::uint64_t mean_bytes = bytes / std::max<std::uint64_t>(1, n_samples) + 1;
  return std::max<std::uint64_t>(1, encoded_block_bytes / mean_bytes);
}

}  // namespace

StoredSample Block::sample(std::uint64_t id) const noexcept {
  const auto index = static_cast<std::size_t>(id - first);
  const auto y_bytes = y.size() / static_cast<std::size_t>(n);
  return {std::span{x}.subspan(offsets[index], offsets[index + 1] - offsets[index]),
          std::span{y}.subspan(index * y_bytes, y_bytes)};
}

std::vector<std::uint64_t> block_starts(const ShardSet& set) {
  const std::uint64_t step = block_samples(set.manifest());
  std::vector<std::uint64_t> starts;
  for (std::size_t shard = 0; shard < set.n_shards(); ++shard) {
    const std::uint64_t end = shard + 1 < set.n_shards() ? set.first_of(shard + 1) : set.n_samples();
    for (std::uint64_t first = set.first_of(shard); first < end; first += step) starts.push_back(first);
  }
  return starts;
}

std::uint64_t block_bytes(const ShardSet& set) noexcept {
  const SetSpec& spec = set.spec();
  if (spec.is_encoded()) return encoded_block_bytes;
  return block_samples(set.manifest()) * (spec.x.bytes() + spec.y.bytes() + sizeof(std::uint64_t));
}

void read_rows(const ShardSet& set, std::size_t shard, std::string_view name, std::uint64_t first, std::uint64_t n,
               std::span<std::byte> out) {
  const std::shared_ptr<const ShardReader> reader = set.open(shard);
  const ArrayIndex* array = reader->index().find(name);
  core::require(array != nullptr, "a shard has every array of its encoding");
  reader->read_rows(*array, first, n, out);
}

std::vector<std::uint64_t> read_offsets(const ShardSet& set, std::uint64_t first, std::uint64_t n) {
  std::vector<std::uint64_t> offsets(static_cast<std::size_t>(n + 1));
  const std::size_t shard = set.shard_of(first);
  read_rows(set, shard, x_offset_name, first - set.first_of(shard), n + 1, std::as_writable_bytes(std::span{offsets}));
  for (std::uint64_t& offset : offsets)
    offset = from_little_endian<std::uint64_t>(std::as_bytes(std::span{&offset, 1}));
  if (!std::is_sorted(offsets.begin(), offsets.end()))
    fail_damaged(fmt::format("the offsets of samples {} to {} are not ascending", first, first + n - 1),
                 set.open(shard)->file().path());
  return offsets;
}

void read_block(const ShardSet& set, std::uint64_t first, std::uint64_t n, Block& block) {
  block.first = first;
  block.n = n;
  block.y.resize(static_cast<std::size_t>(n * set.spec().y.bytes()));
  if (!set.spec().is_encoded()) {
    const std::uint64_t x_bytes = set.spec().x.bytes();
    block.offsets.resize(static_cast<std::size_t>(n + 1));
    for (std::uint64_t i = 0; i <= n; ++i) block.offsets[static_cast<std::size_t>(i)] = i * x_bytes;
    block.x.resize(static_cast<std::size_t>(n * x_bytes));
    return set.read(first, n, block.x, block.y);
  }
  const std::size_t shard = set.shard_of(first);
  block.offsets = read_offsets(set, first, n);
  const std::uint64_t begin = block.offsets.front();
  block.x.resize(static_cast<std::size_t>(block.offsets.back() - begin));
  read_rows(set, shard, x_name, begin, block.x.size(), block.x);
  read_rows(set, shard, y_name, first - set.first_of(shard), n, block.y);
  for (std::uint64_t& offset : block.offsets) offset -= begin;
}

}  // namespace lockstep::data
