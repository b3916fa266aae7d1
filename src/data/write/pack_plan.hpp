// Which sample goes into which shard.
// Invariant: a pure function of the source's splits, the options and the samples left out; the same on every rank.
// Used by data/write/pack.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/load/sampler.hpp"
#include "data/write/pack.hpp"
#include "data/write/selection.hpp"

namespace lockstep::data {

/// A damaged sample of the source.
struct BadRecord {
  std::uint64_t split = 0;  ///< of the source
  std::uint64_t index = 0;
  std::string text;
  auto operator<=>(const BadRecord&) const = default;
};

/// A split of the set.
struct OutputSplit {
  std::string name;
  std::size_t source = 0;  ///< number of the source's split
  Selection selection;
  std::optional<KeyedPermutation> order{};

  /// Samples of the source from `position` of this split on, at most `most`.
  [[nodiscard]] Run run_at(std::uint64_t position, std::uint64_t most) const noexcept {
    return order ? selection.run_at(order->at(position), 1) : selection.run_at(position, most);
  }
};

struct ShardTask {
  std::size_t split = 0;
  ShardPlace place;
};

class PackPlan {
 public:
  /// Throws core::Error (usage) if `options` does not go with `splits`. `bad` is sorted.
  PackPlan(const std::vector<SourceSplit>& splits, const PackOptions& options, std::uint64_t shard_samples,
           const std::vector<BadRecord>& bad);

  [[nodiscard]] const std::vector<OutputSplit>& splits() const noexcept { return splits_; }
  [[nodiscard]] std::vector<ShardTask> tasks() const;
  /// Those that differ from the tasks of `before`, a plan that also had the samples `bad`.
  [[nodiscard]] std::vector<ShardTask> tasks_since(const PackPlan& before, const std::vector<BadRecord>& bad) const;

 private:
  [[nodiscard]] std::uint64_t shard_end(std::size_t split, std::uint64_t first) const noexcept;

  std::uint64_t shard_samples_;
  std::vector<OutputSplit> splits_{};
};

}  // namespace lockstep::data
