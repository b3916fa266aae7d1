#include "nn/plan/unit_walk.hpp"

#include <algorithm>

namespace lockstep::nn {

UnitWalk::UnitWalk(const Network& network, std::span<const std::optional<std::size_t>> units)
    : first_read_(network.nodes().size()), last_read_(network.nodes().size()) {
  for (std::size_t i = 0; i < network.nodes().size(); ++i)
    for (const int parameter : network.nodes()[i].parameters) {
      const std::optional<std::size_t>& unit = units[static_cast<std::size_t>(parameter)];
      if (!unit) continue;
      reads_.resize(std::max(reads_.size(), *unit + 1));
      core::Slice& read = reads_[*unit];
      if (read.empty()) read.offset = i;
      read.count = i + 1 - read.offset;
    }
  for (std::size_t unit = 0; unit < reads_.size(); ++unit) {
    if (reads_[unit].empty()) continue;
    first_read_[reads_[unit].offset].push_back(unit);
    last_read_[reads_[unit].end() - 1].push_back(unit);
  }
}

}  // namespace lockstep::nn
