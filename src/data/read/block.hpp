// Runs of samples that are read together: a chunk of raw samples, or as many image files as make about as much.
// Invariant: where blocks begin follows from the manifest alone; a block lies in one shard.
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
  std::vector<std::uint64_t> offsets{};  ///< where each sample begins in `x`, and the end
  std::vector<std::byte> x{};
  std::vector<std::byte> y{};

  [[nodiscard]] StoredSample sample(std::uint64_t id) const noexcept;
};

/// First sample of each block, ascending.
[[nodiscard]] std::vector<std::uint64_t> block_starts(const ShardSet& set);

/// What a block of the set takes in memory; of an encoded set, about.
[[nodiscard]] std::uint64_t block_bytes(const ShardSet& set) noexcept;

/// Into `block`, whose memory is used again. The samples must lie in one shard.
void read_block(const ShardSet& set, std::uint64_t first, std::uint64_t n, Block& block);

/// Encoded sets: where samples [first, first + n), of one shard, begin in its x, and the end of the last.
[[nodiscard]] std::vector<std::uint64_t> read_offsets(const ShardSet& set, std::uint64_t first, std::uint64_t n);

/// Encoded sets: rows of array `name` of shard `shard`.
void read_rows(const ShardSet& set, std::size_t shard, std::string_view name, std::uint64_t first, std::uint64_t n,
               std::span<std::byte> out);

}  // namespace lockstep::data
