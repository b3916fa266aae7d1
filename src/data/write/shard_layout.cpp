#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "core/error.hpp"
#include "core/units.hpp"
#include "data/write/shard_writer.hpp"

namespace lockstep::data {
namespace {

constexpr std::uint64_t id_bytes = sizeof(std::uint64_t);
constexpr std::uint64_t largest_chunk = std::uint64_t{1} << 30;  // HDF5 allows less than 4 GiB
constexpr std::uint64_t most_encoded_samples = std::uint64_t{1}
                                               << 20;  // their ids, labels and offsets are one chunk each

void check_chunk_bytes(std::uint64_t chunk_bytes) {
  if (chunk_bytes == 0 || chunk_bytes > largest_chunk)
    core::fail_usage({.what = fmt::format("{} is not a valid chunk size", core::format_bytes({chunk_bytes})),
                      .where = "--chunk-size",
                      .expected = "1 B to 1 GiB"});
}

void check_sample_bytes(std::uint64_t sample_bytes, std::uint64_t shard_bytes) {
  if (sample_bytes > shard_bytes || sample_bytes > largest_chunk)
    core::fail_usage({.what = fmt::format("a sample takes {} bytes, more than a shard of {}", sample_bytes,
                                          core::format_bytes({std::min(shard_bytes, largest_chunk)})),
                      .where = "--shard-size",
                      .fix = "allow larger shards (samples above 1 GiB cannot be stored)"});
}

ShardLayout encoded_layout(std::uint64_t shard_bytes, std::uint64_t chunk_bytes, io::Filter filter,
                           std::uint64_t encoded_bytes) {
  if (filter != io::Filter::none)
    core::fail_usage({.what = fmt::format("filter {} on image files, which are compressed already", io::name(filter)),
                      .where = "--compress",
                      .expected = "none",
                      .fix = "leave out --compress, or import without --keep-encoded"});
  const std::uint64_t fitting = shard_bytes / std::max<std::uint64_t>(encoded_bytes, 1);
  return {.shard_samples = std::clamp<std::uint64_t>(fitting, 1, most_encoded_samples),
          .encoded_chunk_bytes = std::min(chunk_bytes, shard_bytes)};
}

}  // namespace

ShardLayout make_layout(const SetSpec& spec, std::uint64_t shard_bytes, std::uint64_t chunk_bytes, io::Filter filter,
                        int level, std::uint64_t encoded_bytes) {
  check_chunk_bytes(chunk_bytes);
  if (spec.is_encoded()) return encoded_layout(shard_bytes, chunk_bytes, filter, encoded_bytes);
  const std::uint64_t sample_bytes = spec.x.bytes() + spec.y.bytes() + id_bytes;
  check_sample_bytes(sample_bytes, shard_bytes);
  // All arrays have chunks of as many samples, so the widest one decides. A power of two keeps chunks aligned.
  const std::uint64_t widest = std::max({spec.x.bytes(), spec.y.bytes(), id_bytes});
  const std::uint64_t fitting = std::min(chunk_bytes / widest, shard_bytes / sample_bytes);
  const std::uint64_t chunk_samples = std::bit_floor(std::max<std::uint64_t>(fitting, 1));
  return {.shard_samples = std::max<std::uint64_t>(shard_bytes / sample_bytes / chunk_samples, 1) * chunk_samples,
          .chunk_samples = chunk_samples,
          .filter = filter,
          .level = level};
}

std::string ShardPlace::file_name() const { return fmt::format("{}-{:05}.h5", split, number); }

}  // namespace lockstep::data
