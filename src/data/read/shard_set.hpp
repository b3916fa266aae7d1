// One split of a shard folder, opened: samples by position, whichever shard they are in.
// Invariant: at most `max_open` files are open; indexes are read when a shard is first touched; thread-safe.
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
  /// Reads the manifest; opens no shard yet. core::Error (usage) as read_manifest and Manifest::split.
  ShardSet(const std::string& folder, std::string_view split, std::size_t max_open = 64);
  /// The same for a manifest that has been read already, as read_manifest(folder, world) does for a large job.
  ShardSet(const std::string& folder, Manifest manifest, std::string_view split, std::size_t max_open = 64);
  ~ShardSet();

  [[nodiscard]] const std::string& folder() const noexcept;
  [[nodiscard]] const Manifest& manifest() const noexcept;
  [[nodiscard]] const SetSpec& spec() const noexcept;
  [[nodiscard]] std::uint64_t n_samples() const noexcept;
  [[nodiscard]] std::size_t n_shards() const noexcept;
  /// Global position of the first sample of a shard.
  [[nodiscard]] std::uint64_t first_of(std::size_t shard) const noexcept;
  [[nodiscard]] std::size_t shard_of(std::uint64_t sample) const noexcept;
  /// The reader stays valid as long as the pointer is kept, even if its file is closed for others meanwhile.
  [[nodiscard]] std::shared_ptr<const ShardReader> open(std::size_t shard) const;
  [[nodiscard]] ReadCounters& counters() const noexcept;

  /// Samples [first, first + n) of x and y as stored (x not decoded if spec().is_encoded(): use read_encoded). May
  /// cross shards.
  void read(std::uint64_t first, std::uint64_t n, std::span<std::byte> x, std::span<std::byte> y) const;
  [[nodiscard]] std::vector<std::byte> read_encoded(std::uint64_t sample, std::span<std::byte> y) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::data
