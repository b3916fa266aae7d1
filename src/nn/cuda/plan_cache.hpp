// The fastest plans, kept on disk between runs.
// Invariant: a file is used only if it is complete and belongs to exactly this GPU, driver and libraries. No file is
// required, and one that cannot be read or written never makes a run fail.
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
  std::vector<std::byte> code{};  ///< from which the library restores it

  friend bool operator==(const StoredPlan&, const StoredPlan&) = default;
};

using StoredPlans = std::map<std::string, StoredPlan>;  ///< by problem

/// Returns a file's content. `machine`: GPU, driver and libraries in words.
[[nodiscard]] std::vector<std::byte> write_plans(std::string_view machine, const StoredPlans& plans);
/// Returns nothing if it is damaged or belongs to another machine.
[[nodiscard]] std::optional<StoredPlans> read_plans(std::span<const std::byte> content, std::string_view machine);

class PlanCache {
 public:
  /// Reads a file in `folder`, which need not exist; with "", nothing is read or kept.
  PlanCache(const std::string& folder, std::string machine);

  [[nodiscard]] const StoredPlan* find(const std::string& key) const;
  /// Replaces an older plan.
  void add(const std::string& key, StoredPlan plan);
  /// Writes new plans, merged with those that other processes have written in the meantime. Reports once if the folder
  /// is not writable.
  void save();

 private:
  std::string path_{};
  std::string machine_;
  StoredPlans plans_{};
  bool is_changed_ = false;
};

/// Returns the folder: $LOCKSTEP_PLAN_CACHE, a folder or "off"; else lockstep in $XDG_CACHE_HOME or ~/.cache. Returns
/// "" if off, or without a home.
[[nodiscard]] std::string plan_cache_folder();

}  // namespace lockstep::nn::cuda
