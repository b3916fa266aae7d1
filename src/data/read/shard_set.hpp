// One split of a shard folder, opened: samples by position, in whichever shard they are.
// Invariant: at most `max_open` files are open; an index is read when its shard is first used; thread-safe.
// Used by data/load/store and `lockstep shard head|pack`.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/format/manifest.hpp"
#include "data/read/shard_reader.hpp"

namespace lockstep::data {

class ShardSet {
 public:
  /// Reads the manifest; opens no shard yet. Throws core::Error (usage) as read_manifest and Manifest::split.
  ShardSet(const std::string& folder, std::string_view split, std::size_t max_open = 64);
  /// The same for a manifest that has already been read, as read_manifest(folder, world) does for a large job.
  ShardSet(const std::string& folder, Manifest manifest, std::string_view split, std::size_t max_open = 64);
  ~ShardSet();

  [[nodiscard]] const std::string& folder() const noexcept;
  [[nodiscard]] const Manifest& manifest() const noexcept;
  [[nodiscard]] const SetSpec& spec() const noexcept;
  [[nodiscard]] std::uint64_t n_samples() const noexcept;
  [[nodiscard]] std::size_t n_shards() const noexcept;
  /// The global position of the first sample of a shard.
  [[nodiscard]] std::uint64_t first_of(std::size_t shard) const noexcept;
  [[nodiscard]] std::size_t shard_of(std::uint64_t sample) const noexcept;
  /// The reader stays valid while the pointer is kept, even if its file is closed for others.
  [[nodiscard]] std::shared_ptr<const ShardReader> open(std::size_t shard) const;
  [[nodiscard]] ReadCounters& counters() const noexcept;

  /// Reads samples [first, first + n) of x and y as stored (x not decoded if spec().is_encoded(): use read_encoded).
  /// The range may cross shards.
  void read(std::uint64_t first, std::uint64_t n, std::span<std::byte> x, std::span<std::byte> y) const;
  [[nodiscard]] std::vector<std::byte> read_encoded(std::uint64_t sample, std::span<std::byte> y) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::data
