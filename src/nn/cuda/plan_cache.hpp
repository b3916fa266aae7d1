// Plans that were found to be the fastest, kept on the disk from run to run.
// Invariant: what a file says is believed only if it is whole and of this very GPU, driver and libraries; no file is
// needed for anything, and none that cannot be read or written makes a run fail.
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
/// Nothing if that is damaged, or of another machine.
[[nodiscard]] std::optional<StoredPlans> read_plans(std::span<const std::byte> content, std::string_view machine);

class PlanCache {
 public:
  /// Of a file in `folder`, which need not be there; "": nothing is read or kept.
  PlanCache(const std::string& folder, std::string machine);

  [[nodiscard]] const StoredPlan* find(const std::string& key) const;
  /// Replaces an older one.
  void add(const std::string& key, StoredPlan plan);
  /// Writes what is new, beside what other processes have written meanwhile. A folder that cannot be written to is told
  /// of once.
  void save();

 private:
  std::string path_{};
  std::string machine_;
  StoredPlans plans_{};
  bool is_changed_ = false;
};

/// Where users want it: $LOCKSTEP_PLAN_CACHE, a folder or "off"; else lockstep in $XDG_CACHE_HOME or ~/.cache. "" if
/// off, or nobody is at home.
[[nodiscard]] std::string plan_cache_folder();

}  // namespace lockstep::nn::cuda
