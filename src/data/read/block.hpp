// Runs of samples that are read together: a chunk of raw samples, or as many image files as are about as large.
// Invariant: the manifest alone determines where blocks begin; a block is in one shard.
// Used by data/load/store and, for the order `blocked`, data/load/loader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "data/read/shard_set.hpp"

namespace lockstep::data {

/// One sample as stored; an encoded x has any length.
struct StoredSample {
  std::span<const std::byte> x{};
  std::span<const std::byte> y{};
};

/// Samples [first, first + n) as stored.
struct Block {
  std::uint64_t first = 0;
  std::uint64_t n = 0;
  std::vector<std::uint64_t> offsets{};  ///< where each sample begins in `x`, followed by the end
  std::vector<std::byte> x{};
  std::vector<std::byte> y{};

  [[nodiscard]] StoredSample sample(std::uint64_t id) const noexcept;
};

/// The first sample of each block, ascending.
[[nodiscard]] std::vector<std::uint64_t> block_starts(const ShardSet& set);

/// The memory of a block of the set; approximate for an encoded set.
[[nodiscard]] std::uint64_t block_bytes(const ShardSet& set) noexcept;

/// Reads into `block`, whose memory is reused. The samples must be in one shard.
void read_block(const ShardSet& set, std::uint64_t first, std::uint64_t n, Block& block);

/// Encoded sets: where samples [first, first + n), of one shard, begin in its x, followed by the end of the last.
[[nodiscard]] std::vector<std::uint64_t> read_offsets(const ShardSet& set, std::uint64_t first, std::uint64_t n);

/// Encoded sets: reads rows of array `name` of shard `shard`.
void read_rows(const ShardSet& set, std::size_t shard, std::string_view name, std::uint64_t first, std::uint64_t n,
               std::span<std::byte> out);

}  // namespace lockstep::data
