// What is left of a set after damaged samples were left out.
// Invariant: no split becomes empty; a class that loses all its samples is named.
// Used by data/write/pack.
#pragma once

#include <string>
#include <vector>

#include "data/format/manifest.hpp"
#include "data/format/source.hpp"
#include "data/write/pack_plan.hpp"

namespace lockstep::data {

/// core::Error (usage) if a split of `plan` has no sample, because all were among `bad`.
void require_samples(const PackPlan& plan, const std::vector<BadRecord>& bad);

/// Classes without a sample, of each split of the set in `folder`; nothing if `bad` is empty.
[[nodiscard]] std::vector<Remark> remarks_on_lost_classes(const std::string& folder, const Manifest& manifest,
                                                          const std::vector<BadRecord>& bad);

}  // namespace lockstep::data
