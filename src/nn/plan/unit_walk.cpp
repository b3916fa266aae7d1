#include "nn/plan/unit_walk.hpp"

#include <map>

namespace lockstep::nn {
namespace {

/// Nodes: the first and the last that read a unit.
struct UnitReaders {
  std::size_t first = 0, last = 0;
};

}  // namespace

UnitWalk::UnitWalk(const Network& network, std::span<const std::optional<std::size_t>> units)
    : first_read_(network.nodes().size()), last_read_(network.nodes().size()) {
  std::map<std::size_t, UnitReaders> readers;
  for (std::size_t i = 0; i < network.nodes().size(); ++i)
    for (const int parameter : network.nodes()[i].parameters) {
      const std::optional<std::size_t>& unit = units[static_cast<std::size_t>(parameter)];
      if (unit) readers.try_emplace(*unit, UnitReaders{i, i}).first->second.last = i;
    }
  for (const auto& [unit, nodes] : readers) {
    first_read_[nodes.first].push_back(unit);
    last_read_[nodes.last].push_back(unit);
  }
}

}  // namespace lockstep::nn
