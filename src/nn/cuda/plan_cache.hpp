// The fastest plans, kept on disk from run to run.
// Invariant: a file is used only if it is whole and belongs to this very GPU, driver and libraries; no file is
// required, and an unreadable or unwritable one never makes a run fail.
// Used by nn/cuda's convolutions.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::nn::cuda {

struct StoredPlan {
  std::string name{};             ///< the library's
  double seconds = 0;             ///< when it was chosen
  std::vector<std::byte> code{};  ///< what the library makes it of again

  friend bool operator==(const StoredPlan&, const StoredPlan&) = default;
};

using StoredPlans = std::map<std::string, StoredPlan>;  ///< by problem

/// A file's content. `machine`: GPU, driver and libraries in words.
[[nodiscard]] std::vector<std::byte> write_plans(std::string_view machine, const StoredPlans& plans);
/// Nothing if it is damaged, or belongs to another machine.
[[nodiscard]] std::optional<StoredPlans> read_plans(std::span<const std::byte> content, std::string_view machine);

class PlanCache {
 public:
  /// Of a file in `folder`, which need not be there; "": nothing is read or kept.
  PlanCache(const std::string& folder, std::string machine);

  [[nodiscard]] const StoredPlan* find(const std::string& key) const;
  /// Replaces an older one.
  void add(const std::string& key, StoredPlan plan);
  /// Writes new plans, merged with those that other processes have written meanwhile. A folder that is not writable is
  /// reported once.
  void save();

 private:
  std::string path_{};
  std::string machine_;
  StoredPlans plans_{};
  bool is_changed_ = false;
};

/// The folder: $LOCKSTEP_PLAN_CACHE, a folder or "off"; else lockstep in $XDG_CACHE_HOME or ~/.cache. "" if off, or if
/// there is no home.
[[nodiscard]] std::string plan_cache_folder();

}  // namespace lockstep::nn::cuda
