#include "comm/transport.hpp"

#include <algorithm>

namespace lockstep::comm {

int Transport::n_nodes() const noexcept { return 1 + *std::max_element(nodes().begin(), nodes().end()); }

std::vector<int> renumber(const std::vector<int>& labels) {
  std::vector<int> seen;
  std::vector<int> nodes;
  nodes.reserve(labels.size());
  for (const int label : labels) {
    const auto at = std::find(seen.begin(), seen.end(), label);
    nodes.push_back(static_cast<int>(at - seen.begin()));
    if (at == seen.end()) seen.push_back(label);
  }
  return nodes;
}

}  // namespace lockstep::comm
