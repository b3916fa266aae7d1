// A set of shards for tests on several ranks.
// Invariant: made by rank 0, seen by all, removed when the last rank has finished with it.
// Used by loader_test and stage_test.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "data/read/shard_set.hpp"
#include "support/ranks.hpp"
#include "unit/data/load/loader_set.hpp"

namespace lockstep::data {

/// A set that rank 0 makes and all read.
class SharedSet {
 public:
  explicit SharedSet(const SetShape& shape) : shape_{shape} {
    if (support::world().rank() == 0) {
      folder_.emplace();
      write_set(folder_->path(), shape);
    }
    path_ = support::world().broadcast(folder_ ? folder_->path().string() : "");
  }
  ~SharedSet() { support::world().barrier(); }
  SharedSet(const SharedSet&) = delete;
  SharedSet& operator=(const SharedSet&) = delete;

  [[nodiscard]] std::shared_ptr<const ShardSet> open() const {
    return std::make_shared<const ShardSet>(path_, "train");
  }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] const SetShape& shape() const noexcept { return shape_; }
  void damage(std::uint64_t id) const {
    if (support::world().rank() == 0) damage_sample(path_, id);
    support::world().barrier();
  }

 private:
  SetShape shape_;
  std::optional<TemporaryFolder> folder_;
  std::string path_;
};

}  // namespace lockstep::data
